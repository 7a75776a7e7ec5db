// Package loops compresses a reference trace to a tree of loops and references, online and without
// loss, and expands it again (MODELS §11.1).
//
// A regular section descriptor (RSD) is a reference that a loop repeats at a constant stride; a
// power RSD (PRSD) is a loop over RSDs and PRSDs (Marathe and Mueller's METRIC; Budanur, Mueller
// and Gamblin, Memory trace compression and replay for SPMD systems using extended PRSDs, The
// Computer Journal 55(2), 2012; and Balasubramanian, ScalaMemAnalysis, chapter 2 and §3.2). The
// tree of a program with affine loops is as large as its code, however long the program ran.
//
//  1. A record of a [trace.Batch] is a leaf: its constant part ([Reference]: site or PC, kind,
//     bytes, thread) and its address. Events are leaves too, so that block entries mark where the
//     loops of a nest begin.
//  2. A loop is a trip count, a body, and a constant step for every parameter of the body. The
//     parameters are the addresses of its leaves and the trip counts of its loops. Both are affine
//     in the iteration, so that triangular nests compress too. Everything but the parameters is the
//     shape of a node; each shape is stored once and has a number.
//  3. [Folder] appends a leaf for every record, and checks whether the end of its list of nodes
//     repeats the records before it: another iteration of a loop there, two equal sequences, or three
//     in arithmetic progression if trip counts differ. A loop that is the last node predicts what
//     comes next. A predicted record costs a comparison and an addition: the folder keeps an
//     odometer of the running iteration, and no list grows.
//  4. A record that was not predicted ends the loop. The parts of the iteration that has begun
//     become nodes of their own, and the inner loop that ran last continues if it can. If the whole
//     iterations fold with the records before them, up to 256 records of an unfinished iteration are
//     replayed, because they may be the next iteration of the result.
//  5. A site is wild if more than half of its records are not predicted and lie at a distance from
//     the record before that is none of the last eight. Its addresses go to a list, and loops fold
//     around it. If a trace has calls, this is decided for each signature of the call stack, with
//     recursion folded, so that a function with many callers folds in each.
//  6. Only a window of the last nodes is searched; older ones are finished. With [Folder.Give], a folder
//     passes finished nodes on as a tree whenever they take too much memory, and begins another tree.
//     Loops of two or three iterations over leaves are undone if that takes fewer bytes.
//  7. [Expander] returns the records as they were, in their order.
//  8. [Tree.Append] encodes a tree, and [Decode] reads it: each shape once, then the shapes of
//     nodes where they differ from the prediction, and their parameters as differences. A tree that
//     would be more than 1.05 times as long as the differences for each site is written as these. A
//     tree may stand for more records than any trace has; differences of polynomials count them.
//
// [Nest] describes a tree by items whose addresses and trip counts are affine in the loops around
// them, to write a tree by hand or to change one.
//
// # Differences
//
// ScalaMemTrace compares signatures, the exclusive or of the call stack's PCs, and matches strides only
// in sign and size per level. Here the signature is the site, or the PC if a trace has no sites, with
// kind, bytes and thread; a trace that has neither folds by kind and bytes. The call stack is not part of
// it, because block entries already distinguish nests; point 5 uses it. Each parameter of a body has a
// step per loop, so that expansion is exact at every level. One list holds the records of all threads in
// their order: their nests fold as far as the threads take turns regularly.
//
// # Limits
//
// Trip counts that depend on data, as in sparse matrices, are no parameters: such loops stay apart.
// An inner loop may run zero times if there are leaves next to it; iterations before the first one in
// which it runs have another shape. The bodies of loops are at most as long as the window. Bodies
// of one or two nodes are found wherever they repeat; longer ones if they end where one of the last
// four equal sequences of three nodes did. Without sites and PCs no reference is wild, few records
// compress, and the loops are not the program's; package sgl assigns sites to such records first.
package loops
