package answers

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Threads provides tables that show how threads use private and shared caches (MODELS §6).
type Threads struct {
	Profile *profile.Profile
	Levels  []hierarchy.Cache // the levels, each predicted separately
	asker   *hierarchy.Asker
	levels  []hierarchy.ByCore // the predictions, in the order of Levels
}

// NewThreads predicts each level separately. The asker must belong to the same profile. The profile
// must have per-thread LRU stacks for the levels' line sizes.
func NewThreads(p *profile.Profile, asker *hierarchy.Asker, levels []hierarchy.Cache) (*Threads, []hierarchy.Warning, error) {
	t := &Threads{Profile: p, Levels: levels, asker: asker}
	var doubts []hierarchy.Warning
	for _, c := range levels {
		one, warnings, err := asker.Predict(hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}}, nil)
		if err != nil {
			return nil, nil, err
		}
		t.levels = append(t.levels, one)
		for _, w := range warnings {
			if !slices.Contains(doubts, w) {
				doubts = append(doubts, w)
			}
		}
	}
	return t, doubts, nil
}

// NumbersOf returns a list of numbers, separated by commas. Three or more consecutive numbers are
// written as a range, such as 0-3.
func NumbersOf(list []uint32) string {
	var words []string
	for i := 0; i < len(list); {
		end := i + 1
		for end < len(list) && list[end] == list[end-1]+1 {
			end++
		}
		if end-i < 3 {
			end = i + 1
		}
		word := strconv.FormatUint(uint64(list[i]), 10)
		if end > i+1 {
			word += "-" + strconv.FormatUint(uint64(list[end-1]), 10)
		}
		words = append(words, word)
		i = end
	}
	return strings.Join(words, ",")
}

// Cores returns a table with a row for each core and private level. A row contains the core's
// accesses, its misses without the effect of other cores' stores, and its misses in a coherent
// cache, by cause. A miss is cold if the core has not accessed the line before. A miss is a
// coherence miss if the access would have been a hit without other cores' stores (in a
// set-associative cache, this is an expected number). All other misses are capacity or conflict
// misses.
func (t *Threads) Cores() report.Table {
	table := report.Table{Key: "cores", Title: "Private caches", Columns: report.Columns(
		"level", "core", "threads", "accesses", "private_misses=misses undisturbed", "misses", "cold",
		"capacity=capacity, conflict", "coherence", "invalidations=lines lost")}
	var off offColumns
	for i, level := range t.Levels {
		if level.SharedBy > 1 {
			continue
		}
		s := t.Profile.SharingAt(level.LineBytes)
		for n := range s.Cores {
			c, asked := &s.Cores[n], &t.levels[i].Cores[n].Levels[0]
			table.Add(report.TextOf(level.Name), report.Count(uint64(n)), report.ListOf(NumbersOf(c.Threads)), report.Count(c.Private.Accesses()),
				numberCell(t.asker.Alone(level, n), true), numberCell(asked.Misses, true), report.Count(c.Coherent.Cold),
				numberCell(asked.Misses-asked.Coherence-float64(c.Coherent.Cold), true), numberCell(asked.Coherence, true), report.Count(c.Coherent.Invalidations))
			if o := c.Off; o != nil {
				misses := coherentOff(c, level, asked.Misses)
				off.addValue("private_misses", wholeOff(t.privateOff(c, level, n)))
				off.addValue("misses", wholeOff(misses))
				off.addValue("cold", report.Count(o.Cold))
				off.addValue("capacity", wholeOff(min(misses+float64(o.Cold+o.Lost), float64(c.Private.Accesses()))))
				off.addValue("coherence", report.Count(o.Lost))
				off.addValue("invalidations", report.Count(o.Invalidations))
			}
		}
	}
	off.insertInto(&table)
	return table
}

// privateOff returns the half-width of the confidence interval for a core's misses without the
// effect of other cores' stores, or 0 if these misses are exact.
func (t *Threads) privateOff(c *profile.Core, level hierarchy.Cache, core int) float64 {
	if c.Off == nil {
		return 0
	}
	full := profile.NewCurve(&c.Private.Distances, c.Private.Cold).Misses(level.Lines())
	return missesOff(c.Off.Private, level.Lines(), full, t.asker.Alone(level, core))
}

// coherentOff does the same as privateOff for the misses of a coherent cache.
func coherentOff(c *profile.Core, level hierarchy.Cache, misses float64) float64 {
	if c.Off == nil {
		return 0
	}
	full := profile.NewCurve(&c.Coherent.Distances, c.Coherent.Cold+c.Coherent.Lost.Total()).Misses(level.Lines())
	return missesOff(c.Off.Coherent, level.Lines(), full, misses)
}

// Views returns a table with a row for each private level. The columns contain the misses of all
// cores according to each model of MODELS §6.
func (t *Threads) Views() report.Table {
	table := report.Table{Key: "views", Title: "Private caches, all cores", Columns: report.Columns(
		"level", "accesses", "private_misses=misses undisturbed", "anger_misses=coherent by Anger",
		"misses=coherent by invalidation", "exact")}
	var off offColumns
	for i, level := range t.Levels {
		if v, ok := t.asker.Views(level); ok && level.SharedBy <= 1 {
			if private, coherent, is := t.viewsOff(i); is {
				off.addValue("private_misses", wholeOff(private))
				off.addValue("anger_misses", report.None())
				off.addValue("misses", wholeOff(coherent))
			}
			table.Add(report.TextOf(level.Name), numberCell(v.Accesses, true), numberCell(v.Private, true), numberCell(v.Anger, true), numberCell(v.Coherent, true), report.YesNo(v.Exact))
		}
	}
	off.insertInto(&table)
	return table
}

// viewsOff adds the half-widths of all cores, because their errors may have the same sign.
func (t *Threads) viewsOff(level int) (private, coherent float64, is bool) {
	s := t.Profile.SharingAt(t.Levels[level].LineBytes)
	for n := range s.Cores {
		c := &s.Cores[n]
		is = is || c.Off != nil
		private += t.privateOff(c, t.Levels[level], n)
		coherent += coherentOff(c, t.Levels[level], t.levels[level].Cores[n].Levels[0].Misses)
	}
	return private, coherent, is
}

// Domains returns a table with a row for each core and shared level. A row contains the core's
// misses in the level, the misses that the core would have if it used the level alone, and the
// core's effective share. The effective share is the capacity at which a private, fully associative
// cache has as many misses as the core has in the shared cache (Anger, Figure 8). The share is
// undefined if the core has fewer misses in the shared cache than it would have in a private cache
// of any size, because other cores fetch lines that this core uses later.
func (t *Threads) Domains() report.Table {
	table := report.Table{Key: "domains", Title: "Shared caches", Columns: report.Columns(
		"level", "cores=of cores", "core", "threads", "accesses", "misses", "alone_misses=misses alone",
		"share_bytes=effective share")}
	var off offColumns
	for i, level := range t.Levels {
		if level.SharedBy <= 1 {
			continue
		}
		s := t.Profile.SharingAt(level.LineBytes)
		for n := range s.Cores {
			c, asked := &s.Cores[n], &t.levels[i].Cores[n].Levels[0]
			cores, member := []uint32{uint32(n)}, (*profile.Member)(nil)
			if number := t.asker.Domain(level, n); number >= 0 {
				cores = s.Domains[number].Cores
				member = &s.Domains[number].Members[slices.Index(cores, uint32(n))]
			}
			share := report.None()
			if lines, ok := t.asker.EffectiveShare(level, n); ok {
				share = report.Bytes(lines * uint64(level.LineBytes))
			}
			table.Add(report.TextOf(level.Name), report.ListOf(NumbersOf(cores)), report.Count(uint64(n)), report.ListOf(NumbersOf(c.Threads)), report.Count(c.Private.Accesses()),
				numberCell(asked.Misses, true), numberCell(t.asker.Alone(level, n), true), share)
			if c.Off == nil {
				continue
			}
			misses := coherentOff(c, level, asked.Misses)
			if member != nil {
				full := profile.NewCurve(&member.Distances, member.Cold).Misses(level.Lines())
				misses = missesOff(member.Bounds, level.Lines(), full, asked.Misses)
			}
			off.addValue("misses", wholeOff(misses))
			off.addValue("alone_misses", wholeOff(t.privateOff(c, level, n)))
		}
	}
	off.insertInto(&table)
	return table
}

// Changes returns a table with a row for each domain and core. The table compares the stack
// distances of the core's accesses on the shared stack with the distances on the core's private
// stack.
func Changes(s *profile.Sharing) report.Table {
	t := report.Table{Key: "changes", Title: "How sharing changes stack distances", Columns: report.Columns(
		"cores=shared by cores", "core", "threads", "accesses", "same", "dilated", "overlapped",
		"intercepted", "brought", "cold")}
	for i := range s.Domains {
		d := &s.Domains[i]
		for k, n := range d.Cores {
			c, m := &s.Cores[n], &d.Members[k]
			t.Add(report.ListOf(NumbersOf(d.Cores)), report.Count(uint64(n)), report.ListOf(NumbersOf(c.Threads)), report.Count(c.Private.Accesses()),
				report.Count(m.Change.Same), report.Count(m.Change.Dilated), report.Count(m.Change.Overlapped), report.Count(m.Change.Intercepted),
				report.Count(m.Change.Brought), report.Count(m.Cold))
		}
	}
	return t
}

// ThreadCurves returns a table of the misses of fully associative LRU caches, with a row for each
// core, view and capacity at which the misses change. The views are a private cache without the
// effect of other cores' stores, a coherent private cache, and a cache shared by all cores
// (concurrent). If brief is set, the table lists only capacities that are powers of two.
func ThreadCurves(s *profile.Sharing, brief bool) report.Table {
	t := report.Table{Key: "curves", Columns: report.Columns(
		"core", "threads", "view", "capacity_lines=capacity (lines)", "misses")}
	var off offColumns
	for n := range s.Cores {
		c, m := &s.Cores[n], &s.Domains[0].Members[n]
		bounds := [3][]profile.Bound{1: m.Bounds}
		if c.Off != nil {
			bounds[0], bounds[2] = c.Off.Private, c.Off.Coherent
		}
		for i, view := range []struct {
			name string
			h    *profile.Histogram
			cold uint64
		}{
			{"private", &c.Private.Distances, c.Private.Cold},
			{"concurrent", &m.Distances, m.Cold},
			{"coherent", &c.Coherent.Distances, c.Coherent.Cold + c.Coherent.Lost.Total()},
		} {
			curve := profile.NewCurve(view.h, view.cold)
			capacities := Powers(curve)
			if !brief {
				capacities = curve.Capacities()
			}
			for _, lines := range capacities {
				misses := curve.Misses(lines)
				t.Add(report.Count(uint64(n)), report.ListOf(NumbersOf(c.Threads)), report.TextOf(view.name), report.Count(lines), report.Count(misses))
				if bounds[i] != nil {
					off.addValue("misses", wholeOff(missesOff(bounds[i], lines, misses, float64(misses))))
				}
			}
		}
	}
	off.insertInto(&t)
	return t
}
