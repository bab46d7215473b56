"""What a target is, as the rest of the package sees it: memory spaces, generating, loading, running."""
