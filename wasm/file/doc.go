// Package file reads a local file that the user chose in the browser (a File or
// a Blob) as an io.Reader, as a stream: no more than a few megabytes of it are
// in memory at any time, and none of it goes anywhere. It builds for js/wasm
// only.
//
// The bytes come by the fastest way that the browser has:
//
//  1. stream() with a reader that brings its own buffer (BYOB): 4 MiB, two of
//     them, so that the browser fills one while the other is analysed;
//  2. stream() with a plain reader;
//  3. slices of 8 MiB.
//
// Large reads are copied once, from the browser's buffer to the caller's; small
// ones are served from a buffer on Go's side, because each crossing costs about
// a microsecond.
package file
