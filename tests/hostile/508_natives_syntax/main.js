%DebugPrint(1);
