// Package program adds the questions about a program to those of package ask: its blocks,
// its loops, what they take on a processor, and what several cores would do with them.
// Their answers take much code, which the page's first program does without: whoever
// answers them imports this package.
package program
