package blob

// AlwaysParts has every object that is not empty uploaded in parts.
func (s *S3) AlwaysParts() { s.whole = 0 }
