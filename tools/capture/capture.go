// Package capture makes programs that record their own memory references.
//
// It stands in for a compiler driver, clang's or flang's:
//
//  1. Each source is compiled to LLVM IR text by the compiler itself, with all of
//     its own options, so optimisation is what it would have been.
//  2. [ir.Instrument] rewrites the text: every block writes down that it runs, and
//     the addresses that it references (runtime/abi.h).
//  3. The compiler makes an object of the text; no optimisation comes behind, so
//     what is recorded is what the optimised program does.
//  4. Programs are linked with a runtime in C, which codes the records into the
//     container .sgt while the program runs (core/trace/sgt/FORMAT.md). It is in
//     this package as source, and is compiled once for each compiler.
//
// What is no compilation or link of that kind is passed on to the compiler as it
// is; and where a source cannot be instrumented, its object is made without: a
// build never fails that works without us.
package capture
