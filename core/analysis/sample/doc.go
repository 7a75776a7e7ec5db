// Package sample estimates from a part of a trace's accesses what other analyses count of
// all of them, and tells how far the estimates may be off (MODELS §8). It stands in for
// package locality, and for what follows it, at a fraction of their time and memory.
//
// # Lines
//
// A sample in space follows every access to some of the lines: those whose hash is
// below a threshold R·2^64. The distinct sampled lines between two accesses to a line
// are a share R of all, so that distances are those counted divided by R (Waldspurger,
// Park, Garthwaite and Ahmad, SHARDS, FAST 2015). With at most so many lines, R is
// halved and lines given up whenever there are more; what was counted until then
// stands for the accesses that it stood for. That alone is coarse: no distance below
// 1/R is told from zero, and whether the few lines that most accesses go to are in
// the sample decides everything. Two things are done about it:
//
//  1. The 16 lines on top of the stack are kept for all accesses (front.go). Most
//     accesses of real programs end there, so those are exact, and take no hash; the
//     sample is of the others alone. Their number is known, so what it is short of,
//     or too many, is put to the shortest distances (SHARDS-adj).
//  2. The time that a line was away from the front, in lines that left it, gives the
//     distance to expect (reuse.go; Eklov and Hagersten, StatStack, ISPASS 2010),
//     whatever the rate. It is combined with the count, each by the inverse of its
//     variance: the time tells short distances, the count long ones.
//
// Sampled lines fall into 2^a sets too sparsely to count depths in them: at a rate of
// a hundredth a set of 8 ways has a twelfth of a sampled line. Sets of a sampled
// profile are answered by the stack distance cache model instead (MODELS §5).
//
// # Accesses
//
// A sample in time follows single accesses until their line is used again (Kulkarni,
// section 2.1). Each access is one by the same chance: the gaps between them are
// geometric and run over all accesses, so that samples overlap; starting a gap when
// the sample before ends would favour short distances. While no sample is open nothing
// is looked at. One that stays open for long would have everything looked at until
// the end of the run: after a part of the mean gap only one line in 64 is counted for
// it, by hash, as above. A sample whose line is not used again stands for a cold
// access: as many lines have a last access as a first one.
//
// # What follows
//
// Other analyses are answered from samples of the same kind (followers.go):
//
//   - Sites and data objects (bysite.go) have all their references counted, and their
//     strides. The access that a sample ends with tells whose distance it is; those that
//     the front holds are exact, of each site. As the number of all accesses is known, of
//     each site and each object, what is left is at the shortest distance (SHARDS-adj,
//     site by site). Where there are several cores (bysitecores.go), the same is done
//     with what accesses find on the coherent stacks of the next item.
//   - Threads (threads.go) have a stack each, and each domain that shares a cache has one,
//     with the front and the times of its own, or with samples of accesses of its own; the
//     accesses of each core are counted, all of them. On the coherent stack (MODELS §6.4)
//     lines and holes are followed exactly at the top, and below as far as they are of the
//     sample: distances are those of the private stack, less by as much as holes have made
//     them among the sampled lines. A sample of an access ends at the next one of its core,
//     which is a coherence miss if another core stored to the line before; the depth at
//     which it was lost is the number of lines since. There are no depths in sets, for
//     which SDCM stands in, and no changes of distances: whether something came in between
//     two accesses is not seen if it is rare.
//   - Communication (talk.go) knows of sampled lines all that it knows of any, so words and
//     lines are estimated without bias. Where the rate falls, lines go with all that they
//     counted, so that the rest is what the last rate would have counted from the start.
//     Pages are left out: who wrote to one last is told by all its lines only. Parts of
//     data without a sampled line have no owner. From single accesses it cannot be told:
//     the source of a use is the last writer of a word, which only those know who look at
//     every access; Kulkarni (section 3.1) proposes lines, or stretches, for that reason.
//
// Of single accesses, it is known who used a line last, but not who was first. First
// accesses, and lines lost to stores, are told instead by up to 8,192 lines that are
// chosen by their hash, of which every access is seen.
//
// What rests on few lines, such as a counter that all threads write, is in the sample
// or it is not: one falsely shared line of many references is missed at a rate of a
// hundredth, 99 times of a hundred, and counts for a hundred such lines otherwise.
//
// # Stretches
//
// [OnOff] leaves out parts of the run, so that any analysis sees the rest in full.
//
// # Intervals
//
// The sampled lines are 16 independent parts, by their hash; single accesses are dealt
// out to 16 in turn. By how much the parts differ tells the standard deviation of the
// number of misses, of each core, site or flow (Student's t with 15 degrees of freedom;
// of communication there are 8 parts); that of distances is known from how they were
// combined, and widens the interval to the misses of the capacities that may be meant.
// Of what is nowhere in the sample there may be three draws (the rule of three). Where
// rows of a table sum up several sites or flows, halves of intervals are added, because
// all may be off to the same side. The histogram of single accesses has a share that is
// a binomial one (Wilson's interval).
package sample
