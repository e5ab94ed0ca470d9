// With its quotes 16 MiB, which is the most that a result may have.
"x".repeat((16 << 20) - 2);
