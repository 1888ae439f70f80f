"""What every process of a flow finds on its host: the clock it goes by, its folder, itself."""
