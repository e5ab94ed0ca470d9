`never closed
