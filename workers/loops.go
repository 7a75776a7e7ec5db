package workers

import "github.com/stackglass/stackglass/core/answers"

// EncodeLoopQuestion gives the binary form of q.
func EncodeLoopQuestion(q answers.LoopQuestion) []byte {
	w := newBody(128)
	w.texts(q.Machine)
	w.number(uint64(q.Loop))
	w.number(uint64(q.Nest))
	w.number(uint64(len(q.Changes)))
	for _, c := range q.Changes {
		w.text(c.Kind)
		w.text(c.Text)
	}
	w.flag(q.Propose)
	return w.bytes
}

// DecodeLoopQuestion reads what [EncodeLoopQuestion] wrote. Its error is a *[BodyError].
func DecodeLoopQuestion(body []byte) (answers.LoopQuestion, error) {
	r := openBody(TypeLoopQuestion, body)
	q := answers.LoopQuestion{Machine: r.texts("the hierarchy"), Loop: uint32(r.below(1<<32, "the loop")), Nest: uint32(r.below(1<<32, "the nest"))}
	for range r.below(uint64(len(body))+1, "the changes") {
		q.Changes = append(q.Changes, answers.NestChange{Kind: r.text("the kind of a change"), Text: r.text("a change")})
	}
	q.Propose = r.flag("the flag of proposals")
	return q, r.end()
}

// EncodeLoopReply gives the binary form of a.
func EncodeLoopReply(a *answers.LoopReply) []byte {
	w := newBody(1 << 12)
	w.flag(a.Trial)
	w.text(a.Problem)
	w.number(uint64(len(a.Levels)))
	for i := range a.Levels {
		l := &a.Levels[i]
		w.text(l.Name)
		w.text(l.Problem)
		w.flag(l.Counted)
		for _, n := range [...]uint64{l.Sets, l.Ways, l.Accesses, l.Jumped} {
			w.number(n)
		}
		w.numbers(l.Misses)
	}
	w.text(a.ClassLevel)
	w.text(a.Refused)
	w.texts(a.Wrong)
	w.texts(a.Doubts)
	w.tables(a.Tables)
	return w.bytes
}

// DecodeLoopReply reads what [EncodeLoopReply] wrote. Its error is a *[BodyError], or
// tells what is wrong with a table.
func DecodeLoopReply(body []byte) (*answers.LoopReply, error) {
	r := openBody(TypeLoopReply, body)
	a := &answers.LoopReply{Trial: r.flag("the flag of changes"), Problem: r.text("the problem")}
	for range r.below(uint64(len(body))+1, "the levels") {
		l := answers.LoopLevel{Name: r.text("a level"), Problem: r.text("its problem"), Counted: r.flag("whether it was counted")}
		for _, n := range [...]*uint64{&l.Sets, &l.Ways, &l.Accesses, &l.Jumped} {
			*n = r.number("a level's counts")
		}
		l.Misses = r.numbers("its misses")
		a.Levels = append(a.Levels, l)
	}
	a.ClassLevel, a.Refused = r.text("the level of classes"), r.text("why nothing can be tried")
	a.Wrong, a.Doubts = r.texts("what is wrong"), r.texts("doubts")
	var err error
	if a.Tables, err = r.tables(); err != nil {
		return nil, err
	}
	return a, nil
}
