package checkpoint

import "testing"

func TestOptionDocs(t *testing.T) {
	t.Parallel()
	docs, list := OptionDocs(), optionList()
	if len(docs) != len(list) {
		t.Fatalf("%d options, %d of them documented", len(list), len(docs))
	}
	for i, d := range docs {
		if d.Name != list[i].name || d.Flink == "" || d.Range == "" || d.Meaning == "" || d.Change == "" {
			t.Errorf("option %s is documented as %+v", list[i].name, d)
		}
	}
}
