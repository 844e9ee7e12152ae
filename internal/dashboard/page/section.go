package page

import (
	"time"

	"croft.dev/croft/internal/diagnose/why"
)

// Sections are the tables and lists of a page, from the top.
type Sections []Section

// Section is a table or a list with a heading.
type Section struct {
	Heading Text
	// Note is a text below the heading.
	Note Text
	// Search is a form above the table.
	Search *Search
	// Diagram shows the table as a picture.
	Diagram *Diagram
	// Waterfall shows the table as a picture of times.
	Waterfall *Waterfall
	// Head and Rows are a table.
	Head []Text
	Rows [][]Cell
	// List is a list.
	List []Text
	// Empty replaces the table or the list if it is empty, and describes the next step.
	Empty Text
}

// Search is a form with one field.
type Search struct {
	// Action is the path of the form, Name and Value are the name and the value of the field.
	Action, Name, Value string
	// Label describes the field, and Button the form.
	Label, Button Text
	// Option is the name of a checkbox, and OptionLabel its description. Most forms have
	// none.
	Option      string
	OptionLabel Text
	// On means that the checkbox is checked.
	On bool
}

// Cell is one cell of a table. The first cell of a row names the object.
type Cell struct {
	// Text is from the cluster or from croft's commands. PageText replaces it with a text of the page itself.
	Text     string
	PageText Text
	// Link is the path of the page about Text, if there is one.
	Link string
	// Verdict marks a state.
	Verdict why.Verdict
	// Since is the time from which Text is the age; zero if Text is no age.
	Since time.Time
	// Share is a used percentage, which is shown as a bar.
	Share *int
}

// listRaw returns texts of the cluster as a list.
func listRaw(all []string) []Text {
	list := make([]Text, len(all))
	for i, text := range all {
		list[i] = Raw(text)
	}
	return list
}

// describeHidden returns a note about the kinds that the user may not list.
func describeHidden(kinds []string) Text { return T("You may not list %s.", nameList(kinds)) }
