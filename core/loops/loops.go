// Package loops compresses a reference trace, online and losslessly, into a tree of loops and
// references, and expands such trees (MODELS §11.1).
//
// A regular section descriptor (RSD) is a reference that a loop repeats at a constant stride. A
// power RSD (PRSD) is a loop over RSDs and PRSDs (Marathe and Mueller's METRIC; Budanur, Mueller
// and Gamblin, Memory trace compression and replay for SPMD systems using extended PRSDs, The
// Computer Journal 55(2), 2012; and Balasubramanian, ScalaMemAnalysis, chapter 2 and §3.2). If a
// program has affine loops, the size of its tree depends only on the program's code, and not on the
// length of the run.
//
//  1. A record of a [trace.Batch] becomes a leaf. A leaf consists of an address and a [Reference],
//     which contains the constant properties (site or PC, kind, bytes, thread). Events become
//     leaves, too, so that block entries mark where the loops of a nest begin.
//  2. A loop is a trip count, a body, and a constant step for every parameter of the body. The
//     parameters are the addresses of the leaves and the trip counts of the loops in the body.
//     Addresses and trip counts are affine functions of the iteration number, so triangular nests
//     compress, too. The shape of a node is everything except the parameters. Each shape is stored
//     once, and is identified by a number.
//  3. [Folder] appends a leaf for every record, and checks whether the end of its list of nodes
//     repeats the nodes before it. The repetition may be a further iteration of the preceding loop,
//     two equal sequences or, if trip counts differ, three sequences in arithmetic progression. If
//     the last node is a loop, the loop predicts the next records. A predicted record costs only a
//     comparison and an addition, because the Folder only advances its position in the current
//     iteration, like an odometer, and appends nothing to its lists.
//  4. A record that was not predicted ends the loop. The items of the unfinished iteration become
//     separate nodes, and the most recent inner loop continues if possible. If the complete
//     iterations fold with the nodes before them, the unfinished iteration may belong to the
//     resulting loop. The records of the unfinished iteration (at most 256) are therefore replayed.
//  5. A site is wild (irregular) if more than half of its records are not predicted and have a new
//     address difference. A difference is the address of a record minus the previous address of its
//     site. A difference is new if it is not among the last eight differences of the site. The
//     addresses of a wild site are stored in a list, so that the surrounding records can fold into
//     loops. If a trace contains calls, a site can be wild for some call stacks and regular for
//     other call stacks. Call stacks that differ only in the depth of a recursion are treated as
//     equal.
//  6. The Folder searches only a window of the most recent nodes for repetitions. Older nodes no
//     longer change. If [Folder.Give] was called, the Folder outputs a tree whenever its nodes take
//     too much memory, and begins a new tree. Loops of two or three iterations over leaves are
//     expanded if that takes fewer bytes.
//  7. [Expander] returns the original records in their original order.
//  8. [Tree.Append] encodes a tree, and [Decode] reads it. The encoding contains the definition of
//     each shape, the shape numbers of mispredicted nodes, and the parameters of nodes as
//     differences. If the encoding would be more than 1.05 times as long as a list of the records
//     with their address differences, the list is written instead. A tree may represent more
//     records than any trace could contain. Records are counted with polynomials, without expanding
//     the tree.
//
// [Nest] describes a tree by items whose addresses and trip counts are affine functions of the
// iterations of the surrounding loops. Programs construct or change a Nest, and build a tree from
// it.
//
// # Differences
//
// ScalaMemTrace compares signatures, each of which is the XOR of the PCs in the call stack, and
// matches only the sign and size of strides at each level. In this package, the signature consists
// of the site (or the PC if a trace has no sites), the kind, the size and the thread. If a trace
// has no sites and no PCs, records are matched by kind and size. The call stack is not part of the
// signature, because block entries already distinguish nests. The call stack is used only for wild
// sites (point 5). Each parameter has a step for every surrounding loop, so that expansion is exact
// at every level. A single list contains the records of all threads in trace order, so nests fold
// only if the threads alternate regularly.
//
// # Limits
//
// Data-dependent trip counts, for example in sparse matrices, are not affine, so each execution of
// a loop with such a trip count is a separate node. An inner loop may have a trip count of 0 if the
// body also contains leaves. However, iterations before the first execution of the inner loop have
// a different shape. The bodies of loops are at most as long as the window. Bodies of one or two
// nodes are found wherever they repeat. To find a longer body, the Folder searches for earlier
// occurrences of the last three shapes of the list. It remembers only the four most recent
// occurrences of each sequence of three shapes. The body is found only if the previous iteration
// ends at one of these four occurrences. Without sites and PCs, no reference is wild, few records compress, and the
// detected loops differ from the loops of the program. Package sgl therefore assigns sites to
// records without sites before it compresses them.
package loops
