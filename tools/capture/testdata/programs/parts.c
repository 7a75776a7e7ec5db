// Calls into a static and a shared library, and into one that is loaded as the
// program runs.
#include <dlfcn.h>
#include <stdio.h>

int in_static(int), in_shared(int);

int main(int argc, char **argv)
{
	int sum = in_static(3) + in_shared(4);
	for (int i = 0; i < 2; i++) {
		void *library = dlopen(argv[argc - 1], RTLD_NOW);
		if (!library) {
			puts(dlerror());
			return 1;
		}
		int (*f)(int) = (int (*)(int))dlsym(library, "in_loaded");
		sum += f(5);
		dlclose(library);
	}
	printf("%d\n", sum);
	return 0;
}
