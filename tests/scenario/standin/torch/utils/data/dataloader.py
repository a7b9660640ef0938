# SPDX-License-Identifier: MIT. Stand-in: one process, batches of one.


class Dataset:
    pass


class IterableDataset(Dataset):
    pass


class _Sampler:
    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)


class _BaseDataLoaderIter:
    def __init__(self, loader):
        self._index_sampler = loader.sampler
        self._num_yielded = 0
        self._data = iter(loader.dataset) if isinstance(loader.dataset, IterableDataset) else iter(
            [loader.dataset[i] for i in range(len(loader.dataset))])

    def __len__(self):
        return len(self._index_sampler)

    def __iter__(self):
        return self

    def __next__(self):
        item = next(self._data)
        self._num_yielded += 1
        return item


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    pass


class DataLoader:
    def __init__(self, dataset, batch_size=1, drop_last=False, num_workers=0):
        self.dataset, self.batch_size, self.drop_last, self.num_workers = dataset, batch_size, drop_last, num_workers
        self.sampler = _Sampler(dataset)

    def __iter__(self):
        return _SingleProcessDataLoaderIter(self)
