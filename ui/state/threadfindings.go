package state

import (
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
)

// falseSharing names the worst case of it.
func (v *View) falseSharing() (Finding, bool) {
	c := v.Communication()
	if c == nil || len(c.FalseFindings()) == 0 {
		return Finding{}, false
	}
	f := c.FalseFindings()[0]
	title := "False sharing"
	if !f.Seen {
		title = "Possible false sharing"
	}
	return Finding{ID: "false-sharing", Title: title, Tab: TabCommunication, Text: f.Name + ": " + f.Text + " To fix it, " + f.Fix + "."}, true
}

// commonOwnBytes is the size of a first level that most processors have.
const commonOwnBytes = 32 << 10

// coherence says on which cores the threads run, and how many accesses to the first
// level miss because another core stored to the line.
func (v *View) coherence(h hierarchy.Hierarchy) (Finding, bool) {
	text := answers.ThreadsOn(v.Profile, h)
	p, _, err := v.predict(h)
	if text == "" || err != nil {
		return Finding{}, false
	}
	l := &p.Levels[0]
	mark := ""
	if l.Method != hierarchy.Exact {
		mark = about
	}
	text += ". " + l.Cache.Name + " misses " + mark + shareOfWhole(l.Misses, l.Accesses) + " of accesses, " + mark + Count(l.Misses)
	if len(p.Cores) > 0 {
		text += "; " + mark + Count(p.Coherence[0]) + " of these because another core stored to the line (coherence misses)"
	}
	return Finding{ID: "coherence", Title: "Threads", Tab: TabCaches, Text: text + "."}, true
}

// largestFlow says which thread sends most to which.
func (v *View) largestFlow() (Finding, bool) {
	c := v.Communication()
	if c == nil {
		return Finding{}, false
	}
	text := c.Sentence()
	if flows := c.Granules[0].Flows; len(flows) > 0 {
		most := flows[0]
		for _, f := range flows {
			if f.Bytes > most.Bytes {
				most = f
			}
		}
		text += " The largest flow, " + Bytes(most.Bytes) + ", goes from thread " + strconv.FormatUint(uint64(most.From), 10) + " to thread " + strconv.FormatUint(uint64(most.To), 10) + "."
	}
	return Finding{ID: "flow", Title: "From thread to thread", Tab: TabCommunication, Text: text}, true
}
