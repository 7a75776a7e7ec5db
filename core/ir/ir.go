// Package ir reads the text of LLVM IR modules, finds their blocks, loops and
// data dependences, and rewrites them so that the compiled program records its
// memory references.
package ir
