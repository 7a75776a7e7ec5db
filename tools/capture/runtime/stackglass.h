/* Calipers: mark a part of a program, so that a trace of it tells which of its
 * references belong to the part.
 *
 *	stackglass_begin("solve");
 *	...
 *	stackglass_end();
 *
 * They nest, each in its thread. In a program that is not traced they do nothing.
 * With STACKGLASS_START=off only what lies between is recorded; with
 * STACKGLASS_REGION=solve only what lies in parts of that name. For C and C++. */
#ifndef STACKGLASS_H
#define STACKGLASS_H

#ifdef __cplusplus
extern "C" {
#endif

void __sg_begin(const char *tag) __attribute__((weak));
void __sg_end(void) __attribute__((weak));

static inline void stackglass_begin(const char *tag)
{
	if (__sg_begin)
		__sg_begin(tag);
}

static inline void stackglass_end(void)
{
	if (__sg_end)
		__sg_end();
}

#ifdef __cplusplus
}
#endif

#endif
