// This file is linked into each instrumented shared library that has a C library. If the library
// calls functions that end the program or create threads, it notifies the runtime, which is in the
// program. Without a runtime, the calls are unchanged.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

// The __wrap_… functions of the library itself take precedence over these.
#define OURS __attribute__((weak, visibility("hidden")))

#define TOLD(name, parameters, ...)                                                                 \
	extern int __sg_call_##name parameters __attribute__((weak));                               \
	int __real_##name parameters;                                                               \
	OURS int __wrap_##name parameters;                                                          \
	int __wrap_##name parameters                                                                \
	{                                                                                           \
		return __sg_call_##name ? __sg_call_##name(__VA_ARGS__) : __real_##name(__VA_ARGS__); \
	}

TOLD(execve, (const char *path, char *const argv[], char *const envp[]), path, argv, envp)
TOLD(execv, (const char *path, char *const argv[]), path, argv)
TOLD(execvp, (const char *file, char *const argv[]), file, argv)
TOLD(execvpe, (const char *file, char *const argv[], char *const envp[]), file, argv, envp)
TOLD(fexecve, (int fd, char *const argv[], char *const envp[]), fd, argv, envp)
TOLD(pthread_create, (pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument), thread, attr, run, argument)
TOLD(pthread_join, (pthread_t thread, void **result), thread, result)

#define ENDS(name)                                                           \
	extern _Noreturn void __sg_call_##name(int status) __attribute__((weak)); \
	_Noreturn void __real_##name(int status);                            \
	OURS _Noreturn void __wrap_##name(int status);                       \
	_Noreturn void __wrap_##name(int status)                             \
	{                                                                    \
		if (__sg_call_##name)                                        \
			__sg_call_##name(status);                            \
		__real_##name(status);                                       \
	}

ENDS(_exit)
ENDS(quick_exit)

OURS _Noreturn void __wrap__Exit(int status);

_Noreturn void __wrap__Exit(int status) { __wrap__exit(status); }

// The variants with a list of arguments that ends with 0.
#define LISTED(name, result)                                             \
	OURS int __wrap_##name(const char *path, const char *first, ...); \
	int __wrap_##name(const char *path, const char *first, ...)      \
	{                                                                \
		va_list list;                                            \
		size_t count = first != 0;                               \
		va_start(list, first);                                   \
		while (first && va_arg(list, char *))                    \
			count++;                                         \
		va_end(list);                                            \
		char *argv[count + 1];                                   \
		argv[0] = (char *)(uintptr_t)first;                      \
		va_start(list, first);                                   \
		for (size_t i = 1; i <= count; i++)                      \
			argv[i] = va_arg(list, char *);                  \
		int failed = result;                                     \
		va_end(list);                                            \
		return failed;                                           \
	}

LISTED(execl, __wrap_execv(path, argv))
LISTED(execlp, __wrap_execvp(path, argv))
LISTED(execle, __wrap_execve(path, argv, va_arg(list, char **)))
