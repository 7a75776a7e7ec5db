package loopcount

import (
	"errors"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Counter answers questions about the loops of one run. It keeps the last results.
type Counter struct {
	loops *answers.Loops

	machine []string
	counted *Misses // of machine; may be nil

	trial   *Trial
	refused string // why there is no trial
	tried   tried
}

// tried is the changes that were tried last, and the reply.
type tried struct {
	machine []string
	nest    uint32
	changes []answers.NestChange
	propose bool
	reply   *answers.Reply
}

// Open reads the loops of an encoded profile. The error says why there are none.
func Open(encoded []byte) (*Counter, error) {
	p, err := profile.Decode(encoded)
	if err != nil {
		return nil, err
	}
	l, err := answers.NewLoops(p, answers.MostNests)
	if err == nil && l == nil {
		err = errors.New("the profile has no loops")
	}
	if err != nil {
		return nil, err
	}
	l.Large(answers.LeastNest)
	return &Counter{loops: l}, nil
}

// Answer passes the replies to a question to give as they come. It stops when goOn is false.
func (c *Counter) Answer(q answers.LoopQuestion, goOn func() bool, give func(*answers.Reply)) {
	var h hierarchy.Hierarchy
	for _, line := range q.Machine {
		if err := h.Add(line); err != nil {
			give(&answers.Reply{Problem: "The hierarchy: " + err.Error() + "."})
			return
		}
	}
	if len(h.Levels) == 0 || int64(q.Loop) >= int64(len(c.loops.Loops)) || int64(q.Nest) >= int64(c.loops.Nests) {
		give(&answers.Reply{Problem: "The question is of another run: reload the page."})
		return
	}
	if c.counted == nil || !slices.Equal(c.machine, q.Machine) {
		c.counted, c.machine = Count(c.loops, h.Levels, goOn), slices.Clone(q.Machine)
		if c.counted == nil {
			return
		}
	}
	give(c.counts(int(q.Loop)))
	if !c.prepare(int(q.Nest)) {
		give(&answers.Reply{Part: answers.PartChanges, Problem: c.refused})
		return
	}
	if len(q.Changes) == 0 && !q.Propose {
		give(&answers.Reply{Part: answers.PartChanges})
		return
	}
	if reply := c.change(q, h.Levels, goOn); reply != nil {
		give(reply)
	}
}

// counts is the reply about the unchanged loops.
func (c *Counter) counts(loop int) *answers.Reply {
	m := c.counted
	levels := report.Table{Key: "levels", Columns: report.Columns(
		"level", "problem", "sets", "ways", "accesses", "jumped=jumped over")}
	byLoop := report.Table{Key: "by_loop", Rows: make([][]report.Value, len(c.loops.Loops))}
	for i := range m.Levels {
		of := &m.Levels[i]
		byLoop.Columns = append(byLoop.Columns, report.Column{Key: of.Cache.Name, Label: of.Cache.Name})
		counts := []report.Value{report.None(), report.None(), report.None(), report.None()}
		if r := of.Result; r != nil {
			counts = []report.Value{report.Count(r.Cache.Sets), report.Count(r.Cache.Ways), report.Count(r.Total.Accesses), report.Count(r.Jumped)}
		}
		levels.Add(append([]report.Value{report.TextOf(of.Cache.Name), report.TextOf(of.Problem)}, counts...)...)
		for k := range byLoop.Rows {
			misses := report.None()
			if of.Result != nil {
				misses = report.Count(of.ByLoop[k].Misses)
			}
			byLoop.Rows[k] = append(byLoop.Rows[k], misses)
		}
	}
	reply := &answers.Reply{More: true, Tables: []report.Table{levels, byLoop, m.Table([]int{loop}), m.Evictions()}}
	if level, classes := m.Classes(loop); classes != nil {
		t := report.Table{Key: "classes", Columns: []report.Column{{Key: "class", Label: "class in " + level}}}
		for _, class := range classes {
			t.Add(report.TextOf(class))
		}
		reply.Tables = append(reply.Tables, t)
	}
	return reply
}

// prepare makes a trial of the nest. It returns false if no changes can be tried on it.
func (c *Counter) prepare(nest int) bool {
	if c.trial != nil && c.trial.number == nest {
		return true
	}
	var err error
	if c.trial, err = NewTrial(c.loops, nest); err != nil {
		c.trial, c.refused = nil, sentence(err)
	}
	return err == nil
}

// mostProposals is the most changes that are proposed.
const mostProposals = 5

// change tries changes, and searches for some. It returns nil if goOn was false.
func (c *Counter) change(q answers.LoopQuestion, levels []hierarchy.Cache, goOn func() bool) *answers.Reply {
	t := &c.tried
	if t.reply != nil && t.nest == q.Nest && t.propose == q.Propose && slices.Equal(t.machine, q.Machine) && slices.Equal(t.changes, q.Changes) {
		return t.reply
	}
	reply := &answers.Reply{Part: answers.PartChanges}
	wrong := report.Table{Key: "wrong", Columns: report.Columns("wrong=what is wrong")}
	var all report.Table
	for _, of := range q.Changes {
		ch, err := c.trial.Read(of.Kind, of.Text)
		if err == nil {
			err = ch.Apply(c.trial.Nest.Clone())
		}
		if err != nil {
			wrong.Add(report.TextOf(sentence(err)))
			continue
		}
		table, doubts, err := c.trial.Try(levels, goOn, ch)
		if !goOn() {
			return nil
		}
		problem := ""
		if err != nil {
			problem = sentence(err)
		}
		wrong.Add(report.TextOf(problem))
		reply.Notes = doubts
		table.Rows = append(all.Rows, table.Rows...)
		all = table
	}
	if len(wrong.Rows) > 0 {
		reply.Tables = append(reply.Tables, wrong)
	}
	if len(all.Rows) > 0 {
		all.Key = "tried"
		reply.Tables = append(reply.Tables, all)
	}
	if q.Propose {
		found, _, err := c.trial.Propose(levels[0], mostProposals, goOn)
		if !goOn() {
			return nil
		}
		switch {
		case err != nil:
			reply.Notes = append(reply.Notes, err.Error())
		case len(found.Rows) == 0:
			reply.Notes = append(reply.Notes, "None of the changes that were tried saves a fiftieth of the misses of "+levels[0].Name)
		default:
			found.Key = "proposed"
			reply.Tables = append(reply.Tables, found)
		}
	}
	*t = tried{slices.Clone(q.Machine), q.Nest, slices.Clone(q.Changes), q.Propose, reply}
	return reply
}

// sentence turns an error into a sentence.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
