package source

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/exec"
)

// emit asks a pacer until end and returns what it granted.
func emit(p *pacer, now *time.Time, end time.Time, lot int) (rows, asked int) {
	for now.Before(end) {
		n, until := p.grant(*now, lot)
		asked++
		if n == 0 {
			*now = until
			continue
		}
		p.spend(n)
		rows += n
	}
	return rows, asked
}

func TestPacer(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, rate := range []float64{0.5, 1, 7, 1000, 1_000_000} {
		p, now := pacer{rate: rate}, start
		rows, asked := emit(&p, &now, start.Add(10*time.Second), 1024)
		if want := 10 * rate; float64(rows) < want*0.95-1 || float64(rows) > want*1.05+1 {
			t.Errorf("rate %v: %d rows in 10 s", rate, rows)
		}
		if rate <= 1000 && asked > 420 {
			t.Errorf("rate %v: asked %d times in 10 s", rate, asked)
		}
		now = now.Add(time.Hour) // a pause
		rows, _ = emit(&p, &now, now.Add(time.Millisecond), 1024)
		if float64(rows) > 1.1*rate+1 {
			t.Errorf("rate %v: %d rows at once after a pause", rate, rows)
		}
	}
	free := pacer{}
	if n, _ := free.grant(start, 1024); n != 1024 {
		t.Error("a source without a rate was held")
	}
}

// TestPaceIsOfTheWholeJob: the shares of all subtasks add up to the table's rate, also
// when some have nothing to read.
func TestPaceIsOfTheWholeJob(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": strings.Repeat("1\n", 50), "b": "1\n"})
	table := one("csv", bigint)
	table.Options = map[string]string{"path": dir}
	spec := reading(table)
	spec.RowsPerSecond = 100
	made := reading(generated(map[string]string{"number-of-rows": "5000"}))
	made.RowsPerSecond = 100
	for _, parallelism := range []int{1, 2, 3, 200} {
		files, numbers := 0.0, 0.0
		for i := range parallelism {
			files += sized(t, spec, setupOf(spec, dir, i, parallelism), 30, 64).pace.rate
			d, err := openDatagen(setupOf(made, dir, i, parallelism))
			if err != nil {
				t.Fatal(err)
			}
			numbers += d.pace.rate
		}
		if files < 99.9 || files > 100.1 || numbers < 99.9 || numbers > 100.1 {
			t.Errorf("parallelism %d: rates %v and %v", parallelism, files, numbers)
		}
	}
}

func TestPacedSourceWaits(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": strings.Repeat("1\n", 50)})
	table := one("csv", bigint)
	table.Options = map[string]string{"path": filepath.Join(dir, "a")}
	spec := reading(table)
	spec.RowsPerSecond = 10
	s := sized(t, spec, setupOf(spec, dir, 0, 1), splitSize, blockSize)
	defer s.Close()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.now = func() time.Time { return now }
	begin, rows := now, 0
	for {
		b, p, until, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if b != nil {
			rows += b.Len
		}
		if p == exec.Done {
			break
		}
		if p == exec.Wait {
			if !until.After(now) {
				t.Fatal("it waits for what is past")
			}
			now = until
		}
	}
	if took := now.Sub(begin); rows != 50 || took < 4800*time.Millisecond || took > 5100*time.Millisecond {
		t.Errorf("%d rows in %v", rows, took)
	}
}
