// Replaces the functions that end a program without exit(), by the linker option --wrap.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime.h"

_Noreturn void __wrap__exit(int status);
_Noreturn void __wrap__Exit(int status);

_Noreturn void __wrap__exit(int status)
{
	sg_finish("exit", status);
	for (;;)
		syscall(SYS_exit_group, status);
}

_Noreturn void __wrap__Exit(int status) { __wrap__exit(status); }

_Noreturn void __real_quick_exit(int status);
_Noreturn void __wrap_quick_exit(int status);

// Its handlers do not receive the status.
_Noreturn void __wrap_quick_exit(int status)
{
	sg_run.status = status;
	__real_quick_exit(status);
}

#define EXEC(name, parameters, ...)                 \
	int __real_##name parameters;               \
	int __wrap_##name parameters;               \
	int __wrap_##name parameters                \
	{                                           \
		struct sg_outside before;           \
		bool paused = sg_pause(&before);  \
		int result = __real_##name(__VA_ARGS__); \
		int error = errno;                  \
		if (paused)                         \
			sg_resume(&before);       \
		errno = error;                      \
		return result;                      \
	}

EXEC(execve, (const char *path, char *const argv[], char *const envp[]), path, argv, envp)
EXEC(execv, (const char *path, char *const argv[]), path, argv)
EXEC(execvp, (const char *file, char *const argv[]), file, argv)
EXEC(execvpe, (const char *file, char *const argv[], char *const envp[]), file, argv, envp)
EXEC(fexecve, (int fd, char *const argv[], char *const envp[]), fd, argv, envp)

// The variants with a list of arguments that ends with 0.

static size_t count_arguments(const char *first, va_list *list)
{
	size_t count = first != 0;
	while (first && va_arg(*list, char *))
		count++;
	return count;
}

static void gather(char **argv, size_t count, const char *first, va_list *list)
{
	argv[0] = (char *)(uintptr_t)first;
	for (size_t i = 1; i <= count; i++)
		argv[i] = va_arg(*list, char *);
}

#define EXEC_LIST(name, result)                                          \
	int __wrap_##name(const char *path, const char *first, ...);     \
	int __wrap_##name(const char *path, const char *first, ...)      \
	{                                                                \
		va_list list;                                            \
		va_start(list, first);                                   \
		size_t count = count_arguments(first, &list);            \
		va_end(list);                                            \
		char *argv[count + 1];                                   \
		va_start(list, first);                                   \
		gather(argv, count, first, &list);                       \
		int failed = result;                                     \
		va_end(list);                                            \
		return failed;                                           \
	}

EXEC_LIST(execl, __wrap_execv(path, argv))
EXEC_LIST(execlp, __wrap_execvp(path, argv))
EXEC_LIST(execle, __wrap_execve(path, argv, va_arg(list, char **)))
