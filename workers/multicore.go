package workers

import (
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/report"
)

// EncodeMulticore gives the binary form of q.
func EncodeMulticore(q answers.MulticoreQuestion) []byte {
	w := newBody(256)
	w.text(q.Name)
	w.text(q.Format)
	w.list(q.Cores)
	w.text(q.Division)
	w.text(q.Schedule)
	w.text(q.Interleave)
	w.number(q.Seed)
	w.texts(q.Private)
	w.texts(q.Machine)
	w.text(q.Processor)
	w.text(q.SDCM)
	w.number(uint64(q.Keep))
	return w.bytes
}

// DecodeMulticore reads what [EncodeMulticore] wrote. Its error is a *[BodyError].
func DecodeMulticore(body []byte) (answers.MulticoreQuestion, error) {
	r := openBody(TypeMulticore, body)
	q := answers.MulticoreQuestion{
		Name: r.text("the name"), Format: r.text("the format"), Cores: r.list("the cores"),
		Division: r.text("the division"), Schedule: r.text("the schedule"), Interleave: r.text("the order"),
		Seed: r.number("the seed"), Private: r.texts("the private addresses"), Machine: r.texts("the hierarchy"),
		Processor: r.text("the processor"), SDCM: r.text("the model"), Keep: uint32(r.below(1<<32, "the profile's cores")),
	}
	return q, r.end()
}

// EncodePredicted gives the binary form of a.
func EncodePredicted(a *answers.MulticoreReply) []byte {
	w := newBody(1<<12 + len(a.Profile))
	w.number(uint64(a.Done))
	w.flag(a.Ended)
	w.text(a.Problem)
	w.texts(a.Notes)
	w.texts(a.Unmodelled)
	w.text(string(a.Profile))
	w.tables(a.Tables)
	return w.bytes
}

// DecodePredicted reads what [EncodePredicted] wrote. Its error is a *[BodyError], or tells
// what is wrong with a table.
func DecodePredicted(body []byte) (*answers.MulticoreReply, error) {
	r := openBody(TypePredicted, body)
	a := &answers.MulticoreReply{
		Done: uint32(r.below(1<<32, "how many are done")), Ended: r.flag("the flag of the end"), Problem: r.text("the problem"),
		Notes: r.texts("the notes"), Unmodelled: r.texts("what is not modelled"),
	}
	if profile := r.text("the profile"); profile != "" {
		a.Profile = []byte(profile)
	}
	var err error
	if a.Tables, err = r.tables(); err != nil {
		return nil, err
	}
	return a, nil
}

// tables writes the rest of a body.
func (w *bodyWriter) tables(list []report.Table) {
	w.number(uint64(len(list)))
	for i := range list {
		w.bytes = list[i].AppendBinary(w.bytes)
	}
}

// tables reads the rest of a body, and ends it.
func (r *bodyReader) tables() (list []report.Table, err error) {
	n := r.number("the tables")
	rest := r.rest()
	if err := r.end(); err != nil {
		return nil, err
	}
	for range n {
		t, left, err := report.ReadTable(rest)
		if err != nil {
			return nil, err
		}
		list, rest = append(list, t), left
	}
	return list, nil
}
