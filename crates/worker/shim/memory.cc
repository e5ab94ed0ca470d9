// Tells us when C++ code in this process can get no more memory, where it would otherwise abort without a word.

#include <new>

extern "C" void heapstead_on_exhausted(void (*handler)()) { std::set_new_handler(handler); }
