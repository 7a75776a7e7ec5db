package command

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/answers/loopcount"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// changeOptions are what the verb loops takes to try changes to the code.
type changeOptions struct {
	nest    int
	caches  []string
	named   string
	propose int
	given   [len(changeKinds)][]string
}

// changeKinds are the changes that can be tried, in the order in which they are made.
var changeKinds = [...]struct{ name, usage string }{
	{"pad", "put bytes behind each row of an array, as in `A=+64`"},
	{"align", "move all arrays, or one, to a multiple of `BYTES`, as in 64 or a=64"},
	{"array-of-structs", "make one array of structures of `ARRAYS`, as in x,y"},
	{"fuse", "make one loop of a `LOOP` and the next one"},
	{"interchange", "exchange two `LOOPS`, as in i,j"},
	{"tile", "cut `LOOPS` into tiles, as in i=32,j=32"},
}

func (o *changeOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.nest, "nest", 0, "the `NUMBER` of the nest to change (0: the one with most references)")
	f.StringArrayVar(&o.caches, "cache", nil, "a level whose misses to count, as in L1=32KiB,8 (repeat for the next one)")
	f.StringVar(&o.named, "hierarchy", "", "a preset, or a `FILE` that describes a hierarchy")
	f.IntVar(&o.propose, "propose", 0, "print the `N` changes that would save most misses of the first level")
	for i, kind := range changeKinds {
		f.StringArrayVar(&o.given[i], kind.name, nil, kind.usage)
	}
	must(cmd.RegisterFlagCompletionFunc("hierarchy", cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveDefault)))
}

// any tells whether a change is asked for.
func (o *changeOptions) any() bool {
	for i := range o.given {
		if len(o.given[i]) > 0 {
			return true
		}
	}
	return o.propose != 0
}

// searchTime is how long a search for changes may take.
const searchTime = time.Minute

// answer tries the changes, or searches for some.
func (o *changeOptions) answer(l *answers.Loops) (table report.Table, doubts []string, err error) {
	h, err := chooseHierarchy(o.caches, o.named)
	if err != nil {
		return table, nil, err
	}
	nest, err := o.chosen(l)
	if err != nil {
		return table, nil, err
	}
	t, err := loopcount.NewTrial(l, nest)
	if err != nil {
		return table, nil, asUsage(err)
	}
	var changes []change.Change
	for i, kind := range changeKinds {
		for _, text := range o.given[i] {
			c, err := t.Read(kind.name, text)
			if err != nil {
				return table, nil, asUsage(err)
			}
			changes = append(changes, c)
		}
	}
	if len(changes) > 0 && o.propose != 0 {
		return table, nil, usagef("--propose and changes exclude each other: --propose looks for changes")
	}
	if o.propose < 0 {
		return table, nil, usagef("--propose ", strconv.Itoa(o.propose), ", want how many changes to print, 1 or more")
	}
	if o.propose == 0 {
		table, doubts, err = t.Try(h.Levels, nil, changes...)
		var refused *change.Error
		if errors.As(err, &refused) {
			err = asUsage(err)
		}
		return table, doubts, err
	}
	begun := time.Now()
	table, stopped, err := t.Propose(h.Levels[0], o.propose, func() bool { return time.Since(begun) < searchTime })
	if stopped {
		doubts = append(doubts, "not all changes were tried: the search was ended after "+searchTime.String())
	}
	if err == nil && len(table.Rows) == 0 {
		doubts = append(doubts, "of the changes that were tried none saves a fiftieth of the misses")
	}
	return table, doubts, err
}

// chosen is the number of the nest from 0.
func (o *changeOptions) chosen(l *answers.Loops) (nest int, err error) {
	if l.Nests == 0 {
		return 0, usagef("there is no loop to change: the trace folds to none")
	}
	if o.nest != 0 {
		for i := range l.Loops {
			if of := &l.Loops[i]; of.Count == o.nest {
				return of.Nest, nil
			}
		}
		return 0, asUsage(&trace.OptionError{Option: "nest", Got: strconv.Itoa(o.nest), Want: "1 to " + strconv.Itoa(l.Nests) + ", as stackglass loops FILE numbers them"})
	}
	largest := uint64(0)
	for i := range l.Loops {
		if of := &l.Loops[i]; of.Depth == 0 && of.References > largest {
			largest, nest = of.References, of.Nest
		}
	}
	return nest, nil
}
