// Ends in the way that its argument says.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int marks[64];

__attribute__((noinline)) static void mark(int n)
{
	for (int i = 0; i < n; i++)
		marks[i] = i;
}

int main(int n, char **how)
{
	char word[64] = "";
	mark(64);
	if (n < 2)
		return 0;
	if (strcmp(how[1], "fault") == 0)
		*(volatile int *)8 = 1;
	if (strcmp(how[1], "abort") == 0)
		abort();
	if (strcmp(how[1], "interrupt") == 0) {
		kill(getpid(), SIGINT);
		pause();
	}
	if (strcmp(how[1], "exec") == 0) {
		execl("/nowhere/at/all", "echo", (char *)0);
		mark(32);
		execl("/bin/echo", "echo", "another", (char *)0);
	}
	if (strcmp(how[1], "fork") == 0) {
		if (fork() == 0) {
			mark(64);
			if (fork() == 0) {
				mark(64);
				_exit(0);
			}
			wait(0);
			exit(0);
		}
		wait(0);
	}
	if (strcmp(how[1], "system") == 0 && system("exit 3") != 3 << 8)
		return 1;
	if (strcmp(how[1], "echo") == 0 && scanf("%63s", word) == 1) {
		printf("%s %s %s\n", how[0], word, getenv("LD_PRELOAD") ? "preloaded" : "plain");
		fprintf(stderr, "%s\n", word);
	}
	return 0;
}
