package answers

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fillFields sets every field to a nonzero value.
func fillFields(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillFields(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fillFields(v.Index(i))
		}
	case reflect.String:
		v.SetString("a text=1 of\nlines")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetUint(99)
	}
}

// The test checks that every field of every question is written as words. The test also fails if
// the list of fields is incomplete.
func TestQuestionsRoundTrip(t *testing.T) {
	var m ModelQuestion
	fillFields(reflect.ValueOf(&m).Elem())
	if got, err := ReadModelQuestion(m.Question().Words); err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("%+v, %v", got, err)
	}
	var c MulticoreQuestion
	fillFields(reflect.ValueOf(&c).Elem())
	if got, err := ReadMulticoreQuestion(c.Question().Words); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("%+v, %v", got, err)
	}
	if words := (ModelQuestion{}).Question().Words; len(words) != 0 {
		t.Errorf("words of the zero question = %q, want none", words)
	}
}

// The error for an invalid question contains the word that is invalid.
func TestErrorNamesInvalidWord(t *testing.T) {
	if _, err := ReadMulticoreQuestion([]string{"seed=-1"}); err == nil || !strings.Contains(err.Error(), `seed "-1"`) {
		t.Errorf("%v, want an error about the seed", err)
	}
	for text, want := range map[string]string{
		"function=x":             `function "x", want a whole number below 2^32`,
		"function=4294967296":    "below 2^32",
		"function=1,function=2":  "one value",
		"changes=a,changes=b":    "one value",
		"processor=p,core=4":     "a name that this version of the page knows",
		"processor=p,nonsense":   `"nonsense"`,
		"block=-1":               "a whole number",
		"machine=a,machine=b,=c": `"=c"`,
	} {
		if _, err := ReadModelQuestion(strings.Split(text, ",")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadModelQuestion of %s: error %v, want an error with %q", text, err, want)
		}
	}
}

// FuzzWords checks that reading a question from words, and writing it again, yields the same words.
func FuzzWords(f *testing.F) {
	f.Add("cores=1\x00cores=2\x00machine=L1=32KiB,8\x00seed=7")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ReadMulticoreQuestion(strings.Split(text, "\x00"))
		if err != nil {
			return
		}
		words := q.Question().Words
		if again, err := ReadMulticoreQuestion(words); err != nil || !slices.Equal(again.Question().Words, words) {
			t.Fatalf("%q became %q, %v", text, words, err)
		}
	})
}
