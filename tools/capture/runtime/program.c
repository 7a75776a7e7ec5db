// The runtime, as it is linked into programs. If a program wraps one of these functions itself, the
// program's wrapper takes precedence.
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

// The functions that calls.c requests: always those of the runtime.
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
