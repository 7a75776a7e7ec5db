// The runtime as it goes into programs. A program that wraps one of these functions
// itself has its own way: ours gives way to it.
#pragma weak __wrap__exit
#pragma weak __wrap__Exit
#pragma weak __wrap_quick_exit
#pragma weak __wrap_execve
#pragma weak __wrap_execv
#pragma weak __wrap_execvp
#pragma weak __wrap_execvpe
#pragma weak __wrap_fexecve
#pragma weak __wrap_execl
#pragma weak __wrap_execlp
#pragma weak __wrap_execle
#pragma weak __wrap_pthread_create
#pragma weak __wrap_pthread_join

#include "whole.c"

// What calls.c asks for: ours in any case.
#define OFFER(name) extern __typeof(__wrap_##name) __sg_call_##name __attribute__((alias("__wrap_" #name)))

OFFER(_exit);
OFFER(quick_exit);
OFFER(execve);
OFFER(execv);
OFFER(execvp);
OFFER(execvpe);
OFFER(fexecve);
OFFER(pthread_create);
OFFER(pthread_join);
