package estimate

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/profile"
)

// joinCommunication adds the results for another set of lines. If both results contain lines of the
// same part of a data object, the part belongs to the owner with more references.
func joinCommunication(to, from *profile.Communication) {
	to.Beyond = max(to.Beyond, from.Beyond)
	to.Messages += from.Messages
	for i := range min(len(to.Granules), len(from.Granules)) {
		a, b := &to.Granules[i], &from.Granules[i]
		a.Flows = joinFlows(a.Flows, b.Flows)
		for class, n := range b.Classes {
			c := &a.Classes[class]
			c.Granules, c.References, c.Events = c.Granules+n.Granules, c.References+n.References, c.Events+n.Events
		}
	}
	to.Pairs = profile.Union(to.Pairs, from.Pairs, profile.ComparePairs, func(a, b *profile.SitePair) {
		a.Events, a.Transfers = a.Events+b.Events, a.Transfers+b.Transfers
	})
	for i := range min(len(to.Windows), len(from.Windows)) {
		to.Windows[i].Flows = joinFlows(to.Windows[i].Flows, from.Windows[i].Flows)
	}
	to.Owners = profile.Union(to.Owners, from.Owners, func(a, b *profile.Ownership) int { return cmp.Compare(a.Object, b.Object) }, joinOwners)
	to.False = joinFalse(to.False, from.False)
	to.LineSharing = joinLineSharing(to.LineSharing, from.LineSharing)
	to.Sources = profile.Union(to.Sources, from.Sources, func(a, b *profile.SourceDistances) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	}, func(a, b *profile.SourceDistances) {
		a.Distances.Merge(&b.Distances)
		a.Transfers.Merge(&b.Transfers)
	})
}

func joinFlows(a, b []profile.Flow) []profile.Flow {
	return profile.Union(a, b, func(a, b *profile.Flow) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	}, func(a, b *profile.Flow) {
		a.Events, a.Transfers, a.Bytes = a.Events+b.Events, a.Transfers+b.Transfers, a.Bytes+b.Bytes
	})
}

// joinOwners joins two lists of the parts of an object. The size of the joined parts is the larger
// of the two part sizes.
func joinOwners(a, b *profile.Ownership) {
	for a.PartBytes != b.PartBytes || max(a.First+uint64(len(a.Parts)), b.First+uint64(len(b.Parts)))-min(a.First, b.First) > profile.MaxParts {
		if a.PartBytes <= b.PartBytes {
			coarsen(a)
			continue
		}
		coarsen(b)
	}
	first := min(a.First, b.First)
	parts := make([]profile.OwnedPart, max(a.First+uint64(len(a.Parts)), b.First+uint64(len(b.Parts)))-first)
	copy(parts[a.First-first:], a.Parts)
	for i := range b.Parts {
		joinPart(&parts[b.First-first+uint64(i)], &b.Parts[i])
	}
	a.First, a.Parts = first, parts
}

// coarsen joins parts in pairs, which doubles their size.
func coarsen(o *profile.Ownership) {
	parts := make([]profile.OwnedPart, (o.First+uint64(len(o.Parts))+1)/2-o.First/2)
	for i := range o.Parts {
		joinPart(&parts[(o.First+uint64(i))/2-o.First/2], &o.Parts[i])
	}
	o.PartBytes, o.First, o.Parts = o.PartBytes*2, o.First/2, parts
}

func joinPart(a, b *profile.OwnedPart) {
	if b.References > a.References {
		*a, b = *b, &profile.OwnedPart{References: a.References, Own: a.Own, Most: a.Most, Readers: a.Readers, Writers: a.Writers}
	}
	if a.References += b.References; a.Most == b.Most {
		a.Own += b.Own
	}
	a.Readers, a.Writers = max(a.Readers, b.Readers), max(a.Writers, b.Writers)
}

func joinFalse(a, b []profile.FalseSharing) []profile.FalseSharing {
next:
	for i := range b {
		for k := range a {
			if a[k].Object == b[i].Object && a[k].Sites == b[i].Sites {
				a[k].Lines, a[k].Events, a[k].Misses = a[k].Lines+b[i].Lines, a[k].Events+b[i].Events, a[k].Misses+b[i].Misses
				a[k].Offset, a[k].Apart = min(a[k].Offset, b[i].Offset), min(a[k].Apart, b[i].Apart)
				continue next
			}
		}
		a = append(a, b[i])
	}
	sort.SliceStable(a, func(i, j int) bool { return a[j].Misses < a[i].Misses })
	return a[:min(len(a), profile.MaxFalseSharing)]
}

// joinLineSharing joins the results for two sets of lines.
func joinLineSharing(a, b []profile.LineSharing) []profile.LineSharing {
	for _, l := range b {
		i := slices.IndexFunc(a, func(other profile.LineSharing) bool { return other.Object == l.Object })
		if i < 0 {
			a = append(a, l)
			continue
		}
		of := &a[i]
		if l.Moves > of.Moves {
			of.Sites, of.Threads = l.Sites, l.Threads
		}
		of.Lines, of.Moves, of.PingPongs = of.Lines+l.Lines, of.Moves+l.Moves, of.PingPongs+l.PingPongs
		of.Owners, of.Offset, of.Apart = max(of.Owners, l.Owners), min(of.Offset, l.Offset), min(of.Apart, l.Apart)
	}
	profile.SortLineSharing(a)
	return a[:min(len(a), profile.MaxLineSharing)]
}

// scaleCommunication scales the counts of sampled lines to all lines. scaleCommunication removes
// the results for pages, because they require all lines of each page.
func scaleCommunication(c *profile.Communication, rate float64, lineBytes uint32) {
	if last := len(c.Granules) - 1; c.Granules[last].Bytes > lineBytes {
		if c.Granules = c.Granules[:last]; c.Off != nil {
			c.Off.Granules = c.Off.Granules[:last]
		}
	}
	scale := func(counts ...*uint64) {
		for _, n := range counts {
			*n = uint64(math.Round(float64(*n) / rate))
		}
	}
	eachCount(c, func(_ offKey, counts ...*uint64) { scale(counts...) })
	c.Messages = 0
	for i := range c.Granules {
		g := &c.Granules[i]
		for k := range g.Flows {
			g.Flows[k].Bytes = g.Flows[k].Transfers * uint64(g.Bytes)
		}
	}
	for _, f := range c.Granules[0].Flows {
		c.Messages += f.Bytes
	}
	for i := range c.Windows {
		for k := range c.Windows[i].Flows {
			f := &c.Windows[i].Flows[k]
			scale(&f.Events, &f.Transfers)
			f.Bytes = f.Transfers * profile.WordBytes
		}
	}
	for i := range c.Owners {
		for k := range c.Owners[i].Parts {
			scale(&c.Owners[i].Parts[k].References, &c.Owners[i].Parts[k].Own)
		}
	}
	for i := range c.LineSharing {
		scale(&c.LineSharing[i].Lines, &c.LineSharing[i].Moves, &c.LineSharing[i].PingPongs)
	}
	for i := range c.Sources {
		for _, h := range []*profile.Histogram{&c.Sources[i].Distances, &c.Sources[i].Transfers} {
			var out profile.Histogram
			for d, n := range h.All() {
				scale(&n)
				out.AddN(d, n)
			}
			*h = out
		}
	}
}
