package ir

import (
	"strings"
	"testing"
)

// TestReturnConstantAfterCall uses a function that makes a call without a result, and then returns
// a constant that a phi selects. The test checks that no separate return is created after the call.
func TestReturnConstantAfterCall(t *testing.T) {
	r, err := Instrument([]byte(`target triple = "x86_64-pc-linux-gnu"
declare void @note()
declare i32 @other()
define i32 @f(i1 %c) {
entry:
  br i1 %c, label %then, label %else
then:
  tail call void @note()
  br label %return
else:
  %r = tail call i32 @other()
  br label %return
return:
  %v = phi i32 [ 0, %then ], [ %r, %else ]
  ret i32 %v
}
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(r.Text); strings.Contains(text, "ret void") || strings.Count(text, "ret i32 %r") != 1 {
		t.Errorf("want the function to return the result of @other, but not of @note:\n%s", text)
	}
}
