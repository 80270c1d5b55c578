"""Where tables are: folders of a disk and object stores."""
