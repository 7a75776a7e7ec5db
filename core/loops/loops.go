// Package loops compresses a reference trace into a tree of loops and references, online and
// without loss, and expands it again (MODELS §11.1).
//
// A regular section descriptor (RSD) is a reference that a loop repeats at a constant stride; a
// power RSD (PRSD) is a loop over RSDs and PRSDs (Marathe and Mueller's METRIC; Budanur, Mueller
// and Gamblin, Memory trace compression and replay for SPMD systems using extended PRSDs, The
// Computer Journal 55(2), 2012; and Balasubramanian, ScalaMemAnalysis, chapter 2 and §3.2). The
// tree of a program with affine loops is as large as its code, however long the program ran.
//
//  1. A record of a [trace.Batch] becomes a leaf: its constant part ([Reference]: site or PC, kind,
//     bytes, thread) and its address. Events become leaves too, so that block entries mark where
//     the loops of a nest begin.
//  2. A loop is a trip count, a body, and a constant step for every parameter of the body. The
//     parameters are the addresses of its leaves and the trip counts of its loops. Both are affine
//     in the iteration, so that triangular nests compress too. Everything but the parameters is the
//     shape of a node; each shape is stored once and has a number.
//  3. [Folder] appends a leaf for every record, and checks whether the end of its list of nodes
//     repeats the nodes before it: as another iteration of a preceding loop, as two equal sequences
//     or, if trip counts differ, as three sequences in arithmetic progression. A loop that is the
//     last node predicts the next records. A predicted record costs a comparison and an addition:
//     the folder keeps an odometer of the running iteration, and no list grows.
//  4. A record that was not predicted ends the loop. The parts of the unfinished iteration become
//     separate nodes, and the inner loop that ran last continues if it can. If the complete
//     iterations fold with the nodes before them, up to 256 records of the unfinished iteration are
//     replayed, because they may be the next iteration of the resulting loop.
//  5. A site is wild if more than half of its records are not predicted and lie at a distance from
//     the site's previous record that equals none of its last eight distances. Its addresses are
//     stored in a list, and the surrounding records fold into loops. If a trace has calls, this is
//     decided for each signature of the call stack, with recursion folded, so that a function with
//     many callers folds in each of them.
//  6. Only a window of the last nodes is searched; older nodes are finished. With [Folder.Give], a
//     folder passes finished nodes on as a tree whenever they take too much memory, and begins a
//     new tree. Loops of two or three iterations over leaves are expanded again if that takes fewer
//     bytes.
//  7. [Expander] returns the original records in their original order.
//  8. [Tree.Append] encodes a tree, and [Decode] reads it. The encoding contains each shape once,
//     the shapes of nodes where they differ from the prediction, and the nodes' parameters as
//     differences. A tree that would take more than 1.05 times the bytes of its records' address
//     differences is written as these differences instead. A tree may stand for more records than
//     any trace has; they are counted by differences of polynomials.
//
// [Nest] describes a tree by items whose addresses and trip counts are affine in the surrounding
// loops. It serves to write a tree by hand or to change one.
//
// # Differences
//
// ScalaMemTrace compares signatures, the exclusive or of the call stack's PCs, and matches only the
// sign and size of strides at each level. Here the signature is the site, or the PC if a trace has
// no sites, together with kind, bytes and thread; a trace that has neither is folded by kind and
// bytes. The call stack is not part of the signature, because block entries already distinguish
// nests; only point 5 uses it. Each parameter of a body has a step per loop, so that expansion is
// exact at every level. A single list contains the records of all threads in their order, so nests
// fold only as far as the threads take turns regularly.
//
// # Limits
//
// Data-dependent trip counts, as in sparse matrices, are not affine, so such loops remain separate.
// An inner loop may run zero times if there are leaves next to it; iterations before the first
// iteration in which it runs have another shape. The bodies of loops are at most as long as the
// window. Bodies of one or two nodes are found wherever they repeat. A longer body is found only if
// the previous iteration ends at one of the last four positions with the same three final nodes.
// Without sites and PCs, no reference is wild, few records compress, and the loops found are not the
// loops of the program; package sgl first assigns sites to such records.
package loops
