package workers

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

func drawStart(t *rapid.T) Start {
	list := rapid.OneOf(rapid.Just([]uint32(nil)), rapid.SliceOf(rapid.Uint32()))
	return Start{
		Key: rapid.String().Draw(t, "key"), Name: rapid.String().Draw(t, "name"), Format: rapid.String().Draw(t, "format"),
		Spec: analysis.Spec{
			Kinds: trace.Kinds(rapid.Uint8().Draw(t, "kinds")),
			Skip:  rapid.Uint64().Draw(t, "skip"), Limit: rapid.Uint64().Draw(t, "limit"),
			Threads: list.Draw(t, "threads"), LineBytes: list.Draw(t, "lines"),
			SkipBad: rapid.Uint64().Draw(t, "bad"), Mergeable: rapid.Bool().Draw(t, "mergeable"),
			Analyses: analysis.Analyses(rapid.Uint32().Draw(t, "analyses")), Start: rapid.Uint64().Draw(t, "start"),
		},
		Resume: rapid.Bool().Draw(t, "resume"),
	}
}

func TestEncodeStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawStart(t)
		got, err := DecodeStart(want.Encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("DecodeStart = %+v, error %v, want %+v", got, err, want)
		}
	})
}

// TestEncodeEveryField checks that every field of every body is the same after it is encoded and
// decoded. If the function Encode omits a new field, this test fails.
func TestEncodeEveryField(t *testing.T) {
	check := func(name string, want any, decode func() (any, error)) {
		got, err := decode()
		if err != nil || !reflect.DeepEqual(got, reflect.ValueOf(want).Elem().Interface()) {
			t.Errorf("%s: decoding returned %+v, error %v, want %+v", name, got, err, want)
		}
	}
	var s Start
	fill(reflect.ValueOf(&s).Elem())
	check("start", &s, func() (any, error) { return DecodeStart(s.Encode()) })
	var p Progress
	fill(reflect.ValueOf(&p).Elem())
	check("progress", &p, func() (any, error) { return DecodeProgress(p.Encode()) })
	var d Done
	fill(reflect.ValueOf(&d).Elem())
	check("done", &d, func() (any, error) { return DecodeDone(d.Encode()) })
	var f Failed
	fill(reflect.ValueOf(&f).Elem())
	check("failed", &f, func() (any, error) { return DecodeFailed(f.Encode()) })
	var h Help
	fill(reflect.ValueOf(&h).Elem())
	check("help", &h, func() (any, error) { return DecodeHelp(h.Encode()) })
	var a Analysed
	fill(reflect.ValueOf(&a).Elem())
	check("analysed", &a, func() (any, error) { return DecodeAnalysed(a.Encode()) })
	var stretch analysis.Stretch
	fill(reflect.ValueOf(&stretch).Elem())
	check("stretch", &stretch, func() (any, error) { return DecodeStretch(EncodeStretch(stretch)) })
	var q answers.Question
	fill(reflect.ValueOf(&q).Elem())
	check("ask", &q, func() (any, error) { return DecodeQuestion(EncodeQuestion(q)) })
	subject := Subject{Profile: []byte("a profile"), Name: "a.ll", Module: []byte("a module")}
	check("subject", &subject, func() (any, error) { return DecodeSubject(subject.Encode()) })
	reply := answers.Reply{
		More: true, Problem: "problem", Notes: []string{"one", ""}, Unmodelled: []string{"caches"}, Bytes: []byte("a file"),
		Tables: []report.Table{{Key: "blocks", Columns: []report.Column{{Key: "n"}}, Rows: [][]report.Value{{report.Count(3)}}}, {Key: "none"}},
	}
	check("answer", &reply, func() (any, error) {
		got, err := DecodeReply(EncodeReply(&reply))
		return *got, err
	})
	segment := analysis.Segment{To: trace.Position{Chunk: 5, Rows: 6}, Rows: 7}
	check("segment", &segment, func() (any, error) { return DecodeSegment(EncodeSegment(segment)) })
}

// The function "fill" sets every field to a value other than its zero value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fill(v.Index(i))
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(77)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[stack.Shelf]() {
			return // this field belongs to the worker and is not encoded
		}
		v.Set(reflect.ValueOf(sample.Options{Mode: profile.TimeSample, Threshold: 1, Lines: 2, Gap: 3, On: 4, Period: 5, Seed: 6}))
	default:
		v.SetUint(99)
	}
}

func TestDecodeErrors(t *testing.T) {
	whole := Progress{Bytes: 300, Millis: math.MaxUint64, Paused: true}.Encode()
	cases := []struct {
		name string
		body []byte
		want string
	}{
		{"empty", nil, "progress message: byte 0: want version 7 of the protocol"},
		{"other version", append([]byte{9}, whole[1:]...), "progress message: byte 0: want version 7 of the protocol"},
		{"cut off", whole[:2], "progress message: byte 1: want the bytes read"},
		{"left over", append(bytes.Clone(whole), 0), "progress message: byte 32: want the end of the message"},
		{"flag", append(bytes.Clone(whole[:len(whole)-7]), 2, 0, 0, 0, 0, 0, 0), "progress message: byte 25: want the ending flag"},
	}
	for _, c := range cases {
		_, err := DecodeProgress(c.body)
		if err == nil || err.Error() != c.want+"; page and worker are from different builds: reload the page" {
			t.Errorf("%s: error = %v, want %s", c.name, err, c.want)
		}
	}
}

// FuzzDecode checks that arbitrary bytes never make a decoder panic, and that every accepted value
// is the same after it is encoded and decoded again.
func FuzzDecode(f *testing.F) {
	f.Add(Start{Key: "k", Name: "a.din", Spec: analysis.Spec{LineBytes: []uint32{32, 64}}, Resume: true}.Encode())
	f.Add(Progress{Bytes: 1 << 40, Threads: 3}.Encode())
	f.Add(Done{Key: "k", Digest: "00ff", Kept: true, Profile: []byte("profile")}.Encode())
	f.Add(Failed{Problem: "no"}.Encode())
	f.Add(Help{Name: "a.sgt", Spec: analysis.Spec{Kinds: trace.AllKinds}}.Encode())
	f.Add(Analysed{References: 1 << 40}.Encode())
	f.Add(EncodeStretch(analysis.Stretch{To: trace.Position{Chunk: trace.AtEnd}, First: 7}))
	f.Add(EncodeSegment(analysis.Segment{Profile: &profile.Profile{}, Rows: 7}))
	f.Add(Subject{Profile: []byte("p"), Module: []byte("m")}.Encode())
	f.Add(EncodeQuestion(answers.Question{Of: "models", Words: []string{"machine=L1=32KiB,8"}, Bytes: []byte("b")}))
	f.Add(EncodeReply(&answers.Reply{More: true, Notes: []string{"a"}, Tables: []report.Table{{Key: "t"}}}))
	f.Add([]byte{protocolVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		if s, err := DecodeStart(body); err == nil {
			again, err := DecodeStart(s.Encode())
			if err != nil || !reflect.DeepEqual(s, again) {
				t.Errorf("start %+v became %+v, %v", s, again, err)
			}
		}
		if p, err := DecodeProgress(body); err == nil {
			if again, err := DecodeProgress(p.Encode()); err != nil || p != again {
				t.Errorf("progress %+v became %+v, %v", p, again, err)
			}
		}
		if d, err := DecodeDone(body); err == nil {
			if again, err := DecodeDone(d.Encode()); err != nil || !reflect.DeepEqual(d, again) {
				t.Errorf("done %+v became %+v, %v", d, again, err)
			}
		}
		if s, err := DecodeSubject(body); err == nil {
			if again, err := DecodeSubject(s.Encode()); err != nil || !reflect.DeepEqual(s, again) {
				t.Errorf("subject %+v became %+v, %v", s, again, err)
			}
		}
		if q, err := DecodeQuestion(body); err == nil {
			if again, err := DecodeQuestion(EncodeQuestion(q)); err != nil || !reflect.DeepEqual(q, again) {
				t.Errorf("question %+v became %+v, %v", q, again, err)
			}
		}
		if a, err := DecodeReply(body); err == nil {
			if again, err := DecodeReply(EncodeReply(a)); err != nil || !bytes.Equal(EncodeReply(again), EncodeReply(a)) {
				t.Errorf("reply %+v became %+v, %v", a, again, err)
			}
		}
		if m, err := DecodeFailed(body); err == nil {
			if again, err := DecodeFailed(m.Encode()); err != nil || m != again {
				t.Errorf("failed %+v became %+v, %v", m, again, err)
			}
		}
		if h, err := DecodeHelp(body); err == nil {
			if again, err := DecodeHelp(h.Encode()); err != nil || !reflect.DeepEqual(h, again) {
				t.Errorf("help %+v became %+v, %v", h, again, err)
			}
		}
		if a, err := DecodeAnalysed(body); err == nil {
			if again, err := DecodeAnalysed(a.Encode()); err != nil || a != again {
				t.Errorf("analysed %+v became %+v, %v", a, again, err)
			}
		}
		if s, err := DecodeStretch(body); err == nil {
			if again, err := DecodeStretch(EncodeStretch(s)); err != nil || s != again {
				t.Errorf("stretch %+v became %+v, %v", s, again, err)
			}
		}
		DecodeSegment(body)    // the decoder may return an error, but must not panic
		DecodeCheckpoint(body) // the decoder may return an error, but must not panic
	})
}
