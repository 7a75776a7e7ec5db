package ui

import (
	"strconv"
	"strings"
)

// An exercise of the workshop is a demo whose result the student must predict before the view is
// shown. The predictions are stored in this browser.

// exercise returns the demo of the current exercise; nil if there is none.
func (a *App) exercise() *Demo {
	if r := a.result; a.Screen.Exercise > 0 && r != nil && r.demo != nil && r.demo.Ask != "" && !a.comparing() {
		return r.demo
	}
	return nil
}

// predicting reports whether the student must predict before the view is shown.
func (a *App) predicting() bool { return a.exercise() != nil && a.prediction() < 0 }

// predictions maps the name of each exercise to the student's choice, which is counted from 0.
func (a *App) predictions() map[string]int {
	if a.chosen == nil {
		a.chosen = map[string]int{}
		for entry := range strings.SplitSeq(a.Port.Remembered("exercises"), " ") {
			name, choice, _ := strings.Cut(entry, "=")
			if n, err := strconv.Atoi(choice); err == nil && n >= 0 {
				a.chosen[name] = n
			}
		}
	}
	return a.chosen
}

// prediction returns the answer (counted from 0) that the student predicts in the current exercise,
// or -1.
func (a *App) prediction() int {
	d := a.exercise()
	if n, ok := a.predictions()[d.Name]; ok && n < len(d.Choices) {
		return n
	}
	return -1
}

// Predict records a prediction; -1 removes the prediction.
func (a *App) Predict(choice int) {
	d := a.exercise()
	if d == nil {
		return
	}
	if a.predictions()[d.Name] = choice; choice < 0 {
		delete(a.chosen, d.Name)
	}
	var entries []string
	for _, d := range a.Port.Demos() {
		if n, ok := a.chosen[d.Name]; ok {
			entries = append(entries, d.Name+"="+strconv.Itoa(n))
		}
	}
	a.Port.Remember("exercises", strings.Join(entries, " "))
	a.touch()
	a.drawCharts()
	if choice >= 0 {
		a.Port.Announce(a.judgement())
	}
}

// judgement returns a sentence on whether the prediction is correct.
func (a *App) judgement() string {
	d, n := a.exercise(), a.prediction()
	if n == d.Right {
		return "Right: " + d.Choices[n] + "."
	}
	return "You predicted: " + d.Choices[n] + ". The answer is: " + d.Choices[d.Right] + "."
}
