/*
 * The entry point of a demo without the C library: run, then leave by the exit
 * system call of Linux on x86-64. The empty assembly keeps the compiler from
 * dropping work whose result nobody reads.
 */
__attribute__((noreturn, used)) void _start(void)
{
    run();
    __asm__ volatile("" ::: "memory");
    __asm__ volatile("syscall" : : "a"(60L), "D"(0L));
    __builtin_unreachable();
}
