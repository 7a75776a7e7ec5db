// The kernels whose runtimes are compared at sizes of several levels of memory. Each lays out
// its arrays for a size, and runs.
#define KERNELS                                                                                \
	KERNEL(matmul)                                                                             \
	KERNEL(jacobi)                                                                             \
	KERNEL(gather)                                                                             \
	KERNEL(chase)                                                                              \
	KERNEL(horner)                                                                             \
	KERNEL(search)                                                                             \
	KERNEL(transpose)                                                                          \
	KERNEL(triad)

// More than any kernel takes; the arrays of one lie one behind the other in it.
enum { ROOM = 192 << 20 };
extern char *room;

#define KERNEL(name)                                                                           \
	void prepare_##name(long n), warm_##name(long n), run_##name(long n);
KERNELS
#undef KERNEL
