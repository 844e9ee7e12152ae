package wording

// Nearest returns the candidate that the author of name most likely meant: the one with the
// fewest changed letters, if they are few enough. A swap of adjacent letters counts as two
// changes.
func Nearest(name string, candidates []string) (string, bool) {
	best, fewest := "", max(min(2, len(name)/2), len(name)/3)+1
	for _, c := range candidates {
		if difference := len(c) - len(name); difference >= fewest || -difference >= fewest {
			continue
		}
		if d := computeDistance(name, c); d < fewest && d < len(c) {
			best, fewest = c, d
		}
	}
	return best, best != ""
}

// computeDistance returns the Levenshtein distance, in bytes.
func computeDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if toLower(a[i]) != toLower(b[j]) {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func toLower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// Suggest returns the end of a message about an unknown name: the most likely candidate, or
// all candidates.
func Suggest(name string, candidates []string) string {
	if n, ok := Nearest(name, candidates); ok {
		return "; did you mean " + n + "?"
	}
	if len(candidates) == 0 || len(candidates) > 10 {
		return ""
	}
	return "; there is " + Enumerate(candidates, "and")
}
