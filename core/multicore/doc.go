// Package multicore tells what the threads of an OpenMP program would do to caches,
// for any number of cores, from the trace of a run with one thread: PPT-SASMM (Barai,
// Chennupati, Santhi, Badawy, Arafa, Eidenbenz, MEMSYS 2020), with its error taken apart
// and most of it removed.
//
// A run with one thread does all of the program's work, one piece after the other. Its
// trace tells where parallel regions begin and end, which loops share out their
// iterations and how, and where threads wait for each other. So the work can be dealt
// out afterwards:
//
//  1. The trace is read once. What is outside of regions belongs to core 0 and goes on at
//     once. A region's rows go on a tape (package tape) until the next barrier or the
//     region's end; that is a phase.
//  2. At the end of a phase it is known how many iterations each worksharing loop in it
//     had. They are divided as OpenMP's schedules do, and what is in the region but in no
//     such loop is done by every core (division.go).
//  3. Each core reads its part of the tape by itself. What is private to a thread moves to
//     addresses of the core's own (private.go).
//  4. The cores' rows become one trace, in an order that is chosen (package interleave):
//     as if the program had been traced with so many threads. Every analysis takes it.
//
// [Options.Division] has the paper's own way beside this one.
//
// # What is decided
//
// Which rows. A trace of the runtime's marks (package ir, trace.ParallelBegin and so on) and
// of blocks: `stackglass cc` with -fopenmp, the program run with OMP_NUM_THREADS=1. One core
// does what the trace says, row for row.
//
// Regions. A fork within a region makes one with one thread, as OpenMP has it unless
// max-active-levels is set: what it does is part of what the core does that forked. A
// league of teams has one team, as LLVM's has by default. The block that a fork
// returns to comes after the region, though its ParallelEnd stands behind its BlockEntry;
// in the same way the block that a barrier returns to belongs to the phase after it.
// Worksharing loops end with a barrier unless the program says nowait, and compilers call
// it by itself. Reductions that wait do so within the runtime, where there is no mark.
//
// Iterations (shape.go). They are occurrences of a loop's header in the function that calls
// the runtime to share it out, one depth of loops deeper than the call; where there is a
// loop over chunks (static with a chunk, and all that the runtime gives out) two. A run
// with one thread has all iterations in one chunk, so what such a loop does before and
// behind its iterations is done for each chunk that a core gets. If the test whether there
// is another chunk stands before the chunk (not optimised), the run made it twice, with
// either outcome: each core makes the first for each of its chunks, and the second once. A
// last chunk that is cut short comes to the test as the second did, and goes on as the
// first. Where the loop is turned round, so that the test stands behind, there is but the one that
// failed, and it is taken for all. Where a test leaves the loop, each iteration takes the test
// behind it along. A core without iterations leaves out what lies around them, where the code
// has a way past it.
//
// Schedules (schedule.go) are those of LLVM's runtime. Static: contiguous parts, of which
// the first are one longer where they do not come out even; or chunks in turn.
// Guided: the 2·cores-th part of what is left, but no less than the chunk. Dynamic and guided
// chunks go to the core whose clock says least, of several to the first: clocks are 0 at
// the beginning of the loop and count data references of its iterations, or cycles of blocks
// where Order has them. A dynamic schedule need not be monotonic unless the program says so,
// and then the runtime has each thread begin with a part of its own, as if static, and
// steal from the ends of others' when it is done: so do cores (thieves), by their clocks. How
// the parts begin is settled; who steals what hangs on chance in a real run.
// [Options.Schedule] dynamic has no parts: each chunk goes to the core that has done
// least. auto is static here; the runtime makes it guided.
//
// What one does for all. single, master and masked are done by core 0; what the
// others do is to ask. Sections are a loop over sections to the compiler, and to us. Critical
// sections, locks, ordered loops and tasks are done where the sequential run did them, and
// nobody waits; [Report.Doubts] counts them. To a reduction each core adds its part: what the
// run loads and stores for it is modified in one go, as threads do in teams of up to four.
// Larger ones add two by two in a function that the run never calls.
//
// Private addresses (private.go): what the stack has below the stack pointer of the function
// that forks. Core c has it c·2^48 bytes higher, which no program's address collides with, and
// which leaves every reference in its set of every cache. Objects that are allocated within a
// region stay where they were, for nobody knows whom they are passed to.
//
// Against real threads: tools/capture has a test that runs a program both ways. Where
// the schedule is static, each core's rows are exactly those of its thread.
package multicore
