package sql

import "strings"

// Suggest returns the candidate that word was most likely meant to be, compared
// without case, or "" where none is near: at most one edit for short words, two or
// three for longer ones. Of equally near candidates the first wins.
func Suggest(word string, candidates []string) string {
	best, bestDistance := "", 1+limitFor(word)
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

func limitFor(word string) int {
	switch n := len(word); {
	case n <= 2:
		return 0
	case n <= 5:
		return 1
	case n <= 9:
		return 2
	}
	return 3
}

// distance counts the insertions, deletions, substitutions and swaps of neighbours
// that turn a into b.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, row, next := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i := range s {
		next[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(t)]
}
