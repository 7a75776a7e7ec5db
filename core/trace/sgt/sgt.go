// Package sgt reads and writes stackglass' own container of traces, .sgt; the
// bytes are drawn in FORMAT.md.
package sgt

// Version is the newest version of the container that this package writes and
// reads.
const Version = 1

// MaxValues is the most values that the sites of one block may have together.
const MaxValues = 48
