"""What loads and other jobs report: results, last errors, metrics, lineage, cursors of groups."""
