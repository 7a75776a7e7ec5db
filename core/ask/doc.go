// Package ask lists the questions that stackglass answers about a run, and answers them.
// The command, the page, exports and comparisons all ask here, so that one question has one
// answer wherever it is asked.
//
//  1. A [Verb] is a kind of question, as in what-if: its name, its help, its arguments with
//     their defaults and allowed values, what a trace has to be analysed for, and the
//     function that answers. [Verbs] lists them; the command makes its options and its help
//     of the list.
//  2. A [Question] is a verb with values for its arguments and with the machine in question.
//     Its words are the same on the command line, in an address of the page and in a message
//     to a worker, as in "threads by=core line=64".
//  3. A [Run] is what questions are about: a profile and its name, or a module of LLVM IR or
//     a loop-compressed trace; and how to get what some answers need besides, as files that
//     an argument names.
//  4. [Run.Answer] gives a [report.Document]: tables with units, what the input was, and
//     warnings.
//
// To add a verb, write a file that adds it: see windows.go, the smallest one. Verbs whose
// answers take much code are in package ask/program, which the page's first program does not
// import.
package ask
