// This file is linked into each instrumented shared library. It registers the library's modules
// with the runtime, which is in the program. It runs before the library's own constructors, and
// after its destructors.
#include "abi.h"

extern struct __sg_module *const __start___sg_modules[] __attribute__((weak, visibility("hidden")));
extern struct __sg_module *const __stop___sg_modules[] __attribute__((weak, visibility("hidden")));

// A program without a runtime may load a library without instrumented code.
extern __typeof__(__sg_register) __sg_register __attribute__((weak));
extern __typeof__(__sg_unregister) __sg_unregister __attribute__((weak));

static __attribute__((constructor(101))) void loaded(void)
{
	if (__sg_register)
		__sg_register(__start___sg_modules, __stop___sg_modules);
}

static __attribute__((destructor(101))) void unloaded(void)
{
	if (__sg_unregister)
		__sg_unregister(__start___sg_modules, __stop___sg_modules);
}
