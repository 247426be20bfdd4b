"""Images and given labels in, augmented batches out: readers, noise, data sets, augmentation."""
