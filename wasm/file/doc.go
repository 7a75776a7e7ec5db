// Package file reads a local file that the user chose in the browser (a File or a Blob) as an
// io.Reader. Only a few megabytes of the file are in memory at a time, and no data leaves the
// machine. Package file builds for js/wasm only.
//
// Package file uses the fastest of these methods that the browser supports:
//
//  1. stream() with a reader that brings its own buffer (BYOB): the browser fills one of two buffers of 4 MiB while the program reads the other buffer;
//  2. stream() with a plain reader;
//  3. slices of 8 MiB.
//
// Large reads are copied once, from the browser's buffer to the caller's. Small reads are served
// from a buffer in Go's memory, because each call from Go to the browser costs about a
// microsecond.
package file
