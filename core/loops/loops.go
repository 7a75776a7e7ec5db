// Package loops folds a reference trace into a tree of loops and references,
// online and without loss, and unfolds it again (MODELS §11.1).
//
// A regular section descriptor (RSD) is a reference that a loop repeats at a
// constant stride; a power RSD (PRSD) is a loop over RSDs and PRSDs (Marathe and
// Mueller's METRIC; Budanur, Mueller and Gamblin, Memory trace compression and
// replay for SPMD systems using extended PRSDs, The Computer Journal 55(2), 2012;
// and Balasubramanian, ScalaMemAnalysis, chapter 2 and §3.2). The tree of a
// program whose loops are affine is as large as its code, however long it ran.
//
//  1. A row of a [trace.Batch] is a leaf: what is constant of it ([Reference]: site
//     or PC, kind, bytes, thread), and its address. Events are leaves too, so that
//     entries of blocks mark where a nest's loops begin.
//  2. A loop is a trip count, a body, and a constant step for every parameter of
//     the body. The parameters are the addresses of its leaves and the trip counts
//     of its loops: both are affine in the iteration, so that triangular nests fold
//     too. What is equal of two nodes, which is everything but parameters, is their
//     shape; a shape is stored once, and has a number.
//  3. [Folder] appends a leaf for every row, and looks whether the end of its list
//     of nodes repeats what is before it: a further iteration of a loop there, two
//     equal sequences, or three in arithmetic progression where trip counts differ.
//     A loop that is the last node says what comes next. A row that is as it says
//     costs a comparison and an addition: the folder keeps an odometer of the
//     iteration that runs, and no list grows.
//  4. A row that is not as the loop says ends it. Of an iteration that has begun,
//     the parts become nodes of their own, and the inner loop that ran last goes on
//     if it can. Where the whole iterations fold with what is before them, up to 256
//     rows of the one that has begun are taken once more, for they may be the next
//     iteration of that.
//  5. A site more than half of whose rows are not predicted, and lie at a distance
//     from the one before that is none of its last eight, is wild: its addresses go
//     to a stream at its side, and loops fold around it. Where a trace has calls, that
//     is judged for each signature of the call stack, with recursion folded: so a
//     function that is called from many places folds in each.
//  6. Only the last nodes are looked at, a window; what is older is finished. A folder
//     that was told to ([Folder.Give]) gives finished nodes as a tree of their own
//     whenever they take too much memory, and begins another. Loops of two or three
//     iterations over leaves are undone where that takes fewer bytes.
//  7. [Expander] gives the rows back, each as it was, in their order.
//  8. [Tree.Append] gives a tree as bytes, and [Decode] reads them: each shape once, then
//     the nodes' shapes where another one follows than last time, and their parameters
//     as differences. A tree that would be more than 1.05 times as long as the
//     differences for each site is written as these. A tree may stand for more rows than
//     any trace has; its rows are counted without unfolding, by the differences of
//     polynomials.
//
// [Nest] describes a tree by items whose addresses and trip counts are affine in the
// loops around them: to write one by hand, or to change one that a trace gave.
//
// # Differences
//
// ScalaMemTrace compares signatures, which are the exclusive or of the call stack's
// PCs, and matches strides only in sign and size per level. Here the signature is
// the site, or the PC where a trace has no sites, with kind, bytes and thread; a
// trace that has neither folds by kind and bytes. The call stack is no part of it, for the
// entries of blocks between rows tell nests apart already; see point 5 for what it is
// needed for. Each parameter of a body has a
// step per loop, so that unfolding is exact at every level. Threads keep their
// order, for one list holds the rows of all of them: their nests fold as far as the
// threads take turns regularly.
//
// # Limits
//
// Trip counts that hang on data, as those of sparse matrices, are no parameters: such
// loops stay apart. An inner loop may run zero times where leaves are beside it;
// iterations before the first in which it runs have another shape, and stay apart. The
// bodies of loops are at most as long as the window; those of one or two nodes are found
// wherever they repeat, longer ones if they end where one of the last four equal
// sequences of three nodes did. Without sites and PCs no reference is wild, little
// folds, and the loops that are found are not those of the program; package sgl gives
// such rows sites first.
package loops
