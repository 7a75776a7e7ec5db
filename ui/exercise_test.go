package ui

import (
	"strings"
	"testing"
)

// TestExercise checks that a view is hidden until the student makes a prediction, and that the
// browser stores the prediction.
func TestExercise(t *testing.T) {
	d := newDesk(t)
	d.demos = d.Demos()
	d.demos[0].Ask, d.demos[0].Choices, d.demos[0].Right, d.demos[0].Why = "How large?", []string{"32 lines", "34 lines"}, 1, "It is a column."
	d.app.Offer(demoItem())
	if page := d.html(); strings.Contains(page, `id="predict"`) {
		t.Error("the page asks for a prediction outside an exercise")
	}
	d.app.Navigate("#" + d.app.Screen.Hash() + "&exercise=1")
	d.wants(`id="predict-ask"`, "How large?", "Exercise 1 of 2")
	if page := d.html(); strings.Contains(page, "A column needs 32 lines") || strings.Contains(page, `id="level-1"`) || strings.Contains(page, `id="verdict"`) {
		t.Error("the page shows the answer before the prediction")
	}
	d.act(func() { d.app.Predict(0) })
	d.wants("You predicted: 32 lines. The answer is: 34 lines.", "It is a column.", "A column needs 32 lines", `href="#exercise=2"`)
	if got := d.remembered["exercises"]; got != naive+"=0" {
		t.Errorf("stored predictions = %q, want %q", got, naive+"=0")
	}
	d.act(func() { d.app.chosen = nil }) // simulates a later visit to the page
	d.wants(`id="judgement"`)
	d.act(func() { d.app.Predict(-1) })
	d.wants(`id="predict-2"`)
	d.act(func() { d.app.Predict(1) })
	d.wants("Right: 34 lines.")
}
