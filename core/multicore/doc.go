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
package multicore
