package ui

import (
	"strconv"
	"strings"
)

// An exercise of the workshop is a demo whose result the student predicts first: the view is hidden until
// then. The predictions stay in this browser.

// exercise is the demo of the current exercise; nil: none.
func (a *App) exercise() *Demo {
	if r := a.result; a.Screen.Exercise > 0 && r != nil && r.demo != nil && r.demo.Ask != "" && !a.comparing() {
		return r.demo
	}
	return nil
}

// predicting reports whether a prediction is to be made before the view is shown.
func (a *App) predicting() bool { return a.exercise() != nil && a.prediction() < 0 }

// predictions are the choices of all exercises, by name, from 0.
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

// prediction is the student's prediction in the current exercise, from 0; -1: nothing yet.
func (a *App) prediction() int {
	d := a.exercise()
	if n, ok := a.predictions()[d.Name]; ok && n < len(d.Choices) {
		return n
	}
	return -1
}

// Predict records a prediction; -1 removes it.
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

// judgement says whether the prediction is right.
func (a *App) judgement() string {
	d, n := a.exercise(), a.prediction()
	if n == d.Right {
		return "Right: " + d.Choices[n] + "."
	}
	return "You predicted: " + d.Choices[n] + ". The answer is: " + d.Choices[d.Right] + "."
}
