package state

import "strconv"

// falseSharing names the worst case of it.
func (v *View) falseSharing() (Finding, bool) {
	c := v.Communication()
	if c == nil || len(c.False) == 0 || c.False[0].Events == 0 {
		return Finding{}, false
	}
	f := c.FalseFindings(1)[0]
	return Finding{ID: "false-sharing", Title: "False sharing", Tab: TabCommunication, Text: upper(f.Title) + ". " + f.Text + " " + f.Advice}, true
}

// commonOwnBytes is the size of a first level that most processors have.
const commonOwnBytes = 32 << 10

// coherence says how many accesses miss only because another thread stored.
func (v *View) coherence() (Finding, bool) {
	t := v.Threads()
	if t == nil {
		return Finding{}, false
	}
	return Finding{ID: "coherence", Title: "Private caches", Tab: TabThreads, Text: t.OwnSentence(commonOwnBytes)}, true
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
